/* A library that is loaded before the C library's functions are bound, into every process of a node: it lets the
 * node's disk be full, remembers what has reached it, and lets the node's wall clock be wrong.
 *
 * The environment says whose: SEAWALL_CONTROL is the file that the harness steers with, mapped by both; SEAWALL_DISK
 * the directory that is the node's disk, SEAWALL_BESIDE one that is another, if it has it; SEAWALL_LOG_DIRS its log directories, by their names in there, separated by
 * colons; SEAWALL_LEDGER where to write what has reached the disk, SEAWALL_KEPT the directory, made when it is missing,
 * for what files held before; SEAWALL_REFUSALS where to write what was refused. All paths are
 * absolute and without symbolic links. Without SEAWALL_CONTROL the library does nothing. A process without
 * SEAWALL_LEDGER is not the node's but tries its disk: what it takes from the budget it takes from a copy.
 */
#ifndef SEAWALL_SHIM_H
#define SEAWALL_SHIM_H

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define LOG_DIRS 8
#define UNLIMITED INT64_MAX

/* What the harness writes, see the Python side; numbers in the machine's own byte order. */
struct control {
    _Atomic int64_t clock_offset_ns;
    _Atomic int64_t free_bytes[1 + LOG_DIRS]; /* of the whole disk, then of each log directory */
};

extern struct control *control; /* NULL: not in use */

#define HIDDEN __attribute__((visibility("hidden")))

/* The function that would have been called without this library. */
#define REAL(name)                                                                                                     \
    ({                                                                                                                 \
        static __typeof__(&name) found;                                                                                \
        if (found == NULL)                                                                                             \
            found = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                        \
        found;                                                                                                         \
    })

#endif
