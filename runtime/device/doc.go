// Package device knows which files of a card reach a job, by CDI, and what no description of a card may ask for.
//
// Descriptions are files that a vendor's tool wrote (nvidia-ctk, amd-ctk and others) and what a driver states itself. Each goes
// through one policy before anything of it touches a job: character devices of cards only, at their own path, never more
// than read and write; files of the system's library places only, read-only; two known helper programs as hooks, with arguments that
// are written anew and an environment of ours. What is known and not needed is left out without a word: sockets of root's
// daemons, nodes that drive screens, hooks that look into the job's files. Everything else is refused, with the reason.
//
// # Names
//
// A card is offered by a name that stays with it: NVIDIA's GPU-… and MIG-…, or what another vendor calls it. Names that only
// count ("0", "gpu1", "all") are not offered, because the order changes; a card that has no other name and one render node
// is offered by its place on the bus, as pci-0000-03-00.0.
//
// Of two descriptions of one name the one from the later folder counts, as CDI says, and a driver's own comes last of all, so
// that it wins over a file that is older than the driver. Two of the same rank are both refused.
//
// # Hooks or not
//
// The default runs no hooks. A hook is a program of root's that works in files of a stranger, and the toolkit's had several
// holes of that kind (CVE-2025-23266, CVE-2025-23267, CVE-2026-24260). Instead the driver's libraries are mounted
// in a folder of their own, under each name by which they are asked for, and that folder is first in LD_LIBRARY_PATH. A
// program that overwrites this variable does not find the driver. Mode WithHooks is the vendor's way, for where that matters.
// Neither mode has been tried with a real card yet.
//
// # Groups
//
// In a user namespace no process has a group of the machine, unless the engine maps that group in. So a node must be open to
// all (0666, as NVIDIA's are), or to a group of Config.Groups that the job's mapping holds, to which the job is then added.
// Otherwise the card is refused, with the udev rule that would change it.
//
// The package keeps no state beside a Devices value: no global cache of the CDI library and no watcher is involved.
package device
