// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// CheckPorts reports in one line every port that something else listens at.
func CheckPorts(ports []int) error {
	var busy []int
	for _, port := range ports {
		listener, err := net.Listen("tcp", net.JoinHostPort(Host, strconv.Itoa(port)))
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			busy = append(busy, port)
		case err != nil:
			return fmt.Errorf("open port %d: %w", port, err)
		default:
			if err := listener.Close(); err != nil {
				return fmt.Errorf("close port %d again: %w", port, err)
			}
		}
	}
	if len(busy) == 0 {
		return nil
	}
	noun, verb := "port", "is"
	if len(busy) > 1 {
		noun, verb = "ports", "are"
	}
	return fmt.Errorf("%s %s of %s %s busy: is another demo or fleetsim running? Stop what listens there, then try again",
		noun, ranges(busy), Host, verb)
}

// ranges writes numbers in rising order, neighbours as one range: 1, 4-6, 9.
func ranges(numbers []int) string {
	slices.Sort(numbers)
	var parts []string
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[0]+n {
			n++
		}
		part := strconv.Itoa(numbers[0])
		if n > 1 {
			part += "-" + strconv.Itoa(numbers[n-1])
		}
		parts = append(parts, part)
		numbers = numbers[n:]
	}
	return strings.Join(parts, ", ")
}
