// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/llmfleet/llmfleet/internal/fleetsim"
)

// use is a port of the demo and what it is for.
type use struct {
	port    int
	purpose string
}

func usedPorts(engines []*fleetsim.Engine) []use {
	uses := []use{{resultPort, "the derived metrics"}, {telemetryPort, "the collector's own metrics"}}
	for i, e := range engines {
		uses = append(uses, use{firstPort + i, "the simulated engine " + e.Name()})
	}
	return uses
}

// checkPorts reports every port that something else listens at.
func checkPorts(uses []use) error {
	var errs []error
	for _, u := range uses {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(u.port)))
		if err != nil {
			errs = append(errs, fmt.Errorf("port %d, for %s, is busy: stop what listens there (%w)", u.port, u.purpose, err))
			continue
		}
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}
