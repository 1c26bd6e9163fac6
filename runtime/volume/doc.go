// Package volume keeps the disks of jobs. A job's disk is one file that holds one ext4 file system, mounted for the job and
// destroyed with it. The writable layer of the job's root file system and its /work folder share it, so that one number bounds
// all that a job writes, on every file system that a rig may have.
//
// The file takes its room from the machine when it is made. A job can fill its own disk and nothing else, and the machine's
// disk cannot run out under a job that was promised room.
//
// A crash at any moment leaves something that Make, Destroy or Purge clears up. A disk becomes one by a rename, after all of it
// has reached the machine's disk, and a loop device belongs to the mount alone: with the mount it goes, whoever died.
//
// Destroying a disk returns its blocks to the machine's file system, which hands none of them on before they read as zeros. The
// bytes on the medium are not overwritten: who takes the medium out of the machine may find them.
package volume
