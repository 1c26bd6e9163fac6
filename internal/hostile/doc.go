// Package hostile holds the hostile tenant: tests that attack a rig's engine from inside real jobs, through images and
// through descriptions of cards, and see that the machine, the house around it and a neighbour's job are unharmed. With each
// protection switched off in turn, some attack must succeed: a wall that nothing leans on is no wall.
//
// The tests need root, containerd, runc, nft and ip, and touch no network but namespaces of their own. `make hostile` runs
// all of it; HAGGLE_FULL=1 makes the bombs as large as they get.
package hostile
