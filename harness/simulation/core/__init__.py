"""The bare core in virtual time: replicas and controller, their disks, links, clocks and clients, from one seed."""
