"""The first process of a container, as tini is: says so, runs ``$COMMAND``, and ends when all that it runs has."""

import os
import subprocess
import sys

if __name__ == "__main__":
    sys.stdout.write("up\n")
    sys.stdout.flush()
    subprocess.run(("sh", "-c", os.environ["COMMAND"]), check=True, stdin=subprocess.DEVNULL)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            sys.exit()
