"""The bare core in virtual time: replicas, controller, disks, links, clocks and clients, drawn from one seed."""
