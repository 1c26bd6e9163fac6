package store

// JudgeDisk is what checkDisk thinks of a file system's number.
func JudgeDisk(folder string, number uint32) error { return judgeDisk(folder, number) }
