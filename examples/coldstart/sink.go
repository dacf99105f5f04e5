// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

const protobuf = "application/x-protobuf"

// sink takes traces as OTLP over HTTP, and keeps them.
type sink struct {
	// rooted is closed when the whole start has come.
	rooted  chan struct{}
	address string

	server http.Server
	served chan error

	mu     sync.Mutex
	traces ptrace.Traces
	whole  bool
}

func listen(address string) (*sink, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &sink{rooted: make(chan struct{}), address: listener.Addr().String(), served: make(chan error, 1), traces: ptrace.NewTraces()}
	s.server = http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second}
	go func() { s.served <- s.server.Serve(listener) }()
	return s, nil
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.keep(request.Traces())
	answer, err := ptraceotlp.NewExportResponse().MarshalProto()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", protobuf)
	w.Write(answer) //nolint:errcheck // who does not wait for the answer has sent it all
}

func (s *sink) keep(traces ptrace.Traces) {
	s.mu.Lock()
	defer s.mu.Unlock()
	traces.ResourceSpans().MoveAndAppendTo(s.traces.ResourceSpans())
	if _, ok := rootOf(s.traces); ok && !s.whole {
		s.whole = true
		close(s.rooted)
	}
}

// all is what has come.
func (s *sink) all() ptrace.Traces {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traces
}

func (s *sink) close() error {
	err := s.server.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
