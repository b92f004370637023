package xid

import "strings"

// driverOpeners are words with which the driver's text after a process name is
// known to begin.
var driverOpeners = [...]string{
	"An uncorrectable ", "BAD_TSG ", "Bank Remapper", "C2C", "CE ", "CHI ", "CMDre ", "CTX SWITCH", "ChID ", "Channel 0",
	"Channel ID ", "Class Error", "Compute ", "Contained: ", "Copy Engine", "DRAM ", "Double Bit", "Double bit",
	"Dynamic Page", "Dynamic page", "ECC ", "Engine ", "FIFO", "Fault ", "GDDR", "GPU ", "HBM", "High ",
	"GSP ", "Graphics ", "HUB", "HWERR", "Host ", "Illegal ", "Kernel ", "L2 ", "MC ", "MMU Fault", "MMU fault", "MSE", "Marking ",
	"NETIR", "NVDEC", "NVENC", "NVJPG", "NVLPW", "NVLink", "OFA", "PBDMA", "PMU", "Physical ", "Power ", "RC watchdog", "RLW_",
	"Reset ", "Resetting ", "Retiring ", "Row Remapper", "Row remapper", "SAW_", "SEC_FAULT", "SRAM ", "Single Bit",
	"TLC ", "TLW_", "TREX", "Timeout ", "Unable to ", "Uncontained: ", "Uncorrectable ", "Video ", "caused by ", "channel 0x",
	"errorString ", "intr ", "physical page", "recovery action",
}

// driverWords says whether s begins like a text of the driver: with known words,
// a channel ("Ch 00000008"), or register values ("0003 00000000", "203c(3090)").
func driverWords(s string) bool {
	if rest, ok := strings.CutPrefix(s, "Ch "); ok {
		return hexDigits(rest) == 8
	}
	if rest, ok := strings.CutPrefix(s, "0x"); ok {
		return hexDigits(rest) >= 4
	}
	if n := hexDigits(s); n == 4 || n == 8 {
		if len(s) > n && (s[n] == '(' || s[n] == ' ' && hexDigits(s[n+1:]) == 8) {
			return true
		}
	}
	for _, opener := range driverOpeners {
		if strings.HasPrefix(s, opener) {
			return true
		}
	}
	return false
}

// hexDigits counts the hexadecimal digits that s begins with.
func hexDigits(s string) int {
	for i := range len(s) {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return i
		}
	}
	return len(s)
}
