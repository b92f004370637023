package xid

const maxCode = 99999

func gspStopped(string) bool { return false }
