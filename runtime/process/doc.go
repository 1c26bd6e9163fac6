// Package process is an engine for labs: it runs jobs as plain processes of the user who runs the rig, on Linux, macOS and
// Windows, without root and without containers.
//
// It isolates nothing: a job reads and writes what its user may, and sees every process and the network. Limits of memory,
// processor and processes are not kept, only that of the log. It therefore calls its isolation "none", knows no devices but
// simulated cards, and must never be given the job of a stranger.
//
// An image is an archive whose entrypoint is a program among its files; the file is unpacked and run as it is. A job runs in
// a folder of its own, whatever working directory it asks for. That folder is what /work is elsewhere, and the job finds its path
// in the environment variable HAGGLE_WORK. There is nothing at /work itself. In the same way HAGGLE_SECRETS names the folder of
// its secrets; a job that has some is made only where the system keeps files in memory, which is Linux.
//
// Each job has a supervisor, a process of its own session that starts the job, writes its log, carries out orders and notes
// how the job ended. All that engine and supervisor say to each other are files in the job's folder:
//
//	job.json      what to run; written once, by the engine
//	lock          locked for as long as the supervisor lives, so that nobody has to trust a process id
//	started.json  the order to start, then the process that runs
//	stop.json     the order to end
//	ended.json    how the job ended; the last word
//	ended.room    room on the disk for the last word
//	log           see runtime.LogWriter
//	work          where the job runs; moved away when another job takes it over
//	secrets       a link to the folder of its secrets, in memory
//	door          the door through which the job is entered; see Engine.Enter
//
// A door has a supervisor of its own, which lives as long as the door, ends it with the job, and works with files of the same
// names in the folder door; door.json says what to run. The door listens on a socket in that folder or, where its path would be
// too long for one, in a folder of its own among the temporary files. Both are closed to other users.
//
// So an engine that comes back, after a kill too, finds every job as it is.
package process
