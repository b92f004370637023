//go:build cgo

package main

import (
	"errors"
	"os"
)

func sample([]string, *os.File) error { return errors.New("not there yet") }
