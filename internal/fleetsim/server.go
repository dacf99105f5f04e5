// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const contentType = "text/plain; version=0.0.4; charset=utf-8"

// Server shows each engine of a simulation at a port of its own, path
// /metrics.
type Server struct {
	mu        sync.Mutex
	sim       *Simulation
	listeners []net.Listener
}

// Listen opens one port for each engine of sim, from port on; port 0 lets the
// system choose. When a port is busy none stays open, and the error names it.
func Listen(sim *Simulation, host string, port int) (*Server, error) {
	s := &Server{sim: sim}
	for i, e := range sim.Engines() {
		p := port
		if port != 0 {
			p += i
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p)))
		if err != nil {
			return nil, errors.Join(
				fmt.Errorf("open port %d for %s: %w", p, e.Name(), err),
				s.close(),
			)
		}
		s.listeners = append(s.listeners, listener)
	}
	return s, nil
}

func (s *Server) close() error {
	var errs []error
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// URLs of the pages, in the order of the simulation's engines.
func (s *Server) URLs() []string {
	var urls []string
	for _, l := range s.listeners {
		urls = append(urls, "http://"+l.Addr().String()+"/metrics")
	}
	return urls
}

// Serve answers scrapes until ctx is done. Before each page the simulation is
// played up to what elapsed returns: real time for a person who watches.
func (s *Server) Serve(ctx context.Context, elapsed func() time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	errs := make([]error, len(s.listeners))
	for i, listener := range s.listeners {
		engine := s.sim.Engines()[i]
		mux := http.NewServeMux()
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, engine, elapsed()) })
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		stop := context.AfterFunc(ctx, func() { server.Close() })
		group.Go(func() {
			defer stop()
			defer cancel()
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				errs[i] = fmt.Errorf("serve %s: %w", engine.Name(), err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func (s *Server) answer(w http.ResponseWriter, e *Engine, elapsed time.Duration) {
	body, status := s.page(e, elapsed)
	switch status {
	case http.StatusOK:
		w.Header().Set("Content-Type", contentType)
		w.Write(body) //nolint:errcheck // the scraper has gone; there is nobody to tell
	case NoAnswer:
		panic(http.ErrAbortHandler) // closes the connection without an answer
	default:
		http.Error(w, http.StatusText(status), status)
	}
}

func (s *Server) page(e *Engine, elapsed time.Duration) ([]byte, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sim.AdvanceTo(elapsed)
	return e.AppendPage(nil)
}
