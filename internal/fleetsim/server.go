// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Server shows each target of a simulation at a port of its own.
type Server struct {
	mu        sync.Mutex
	sim       *Simulation
	listeners []net.Listener
}

// Listen opens one port for each target of sim, from port on; port 0 lets the
// system choose. When a port is busy none stays open, and the error names it.
func Listen(sim *Simulation, host string, port int) (*Server, error) {
	s := &Server{sim: sim}
	for i, target := range sim.Targets() {
		p := port
		if port != 0 {
			p += i
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p)))
		if err != nil {
			return nil, errors.Join(
				fmt.Errorf("open port %d for %s: %w", p, target.Name(), err),
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

// URLs of the pages, in the order of the simulation's targets.
func (s *Server) URLs() []string {
	var urls []string
	for i, l := range s.listeners {
		urls = append(urls, "http://"+l.Addr().String()+s.sim.Targets()[i].Path())
	}
	return urls
}

// TargetsURL is where Prometheus's http_sd finds all pages, with the labels that
// a scrape gives them.
func (s *Server) TargetsURL() string {
	return "http://" + s.listeners[0].Addr().String() + targetsPath
}

// Serve answers scrapes until ctx is done. Before each page the simulation is
// played up to what elapsed returns: real time for a person who watches. If
// somebody watches the requests, it is played every second without a scrape, too.
func (s *Server) Serve(ctx context.Context, elapsed func() time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	errs := make([]error, len(s.listeners))
	for i, listener := range s.listeners {
		target := s.sim.Targets()[i]
		server := &http.Server{Handler: s.handler(target, elapsed), ReadHeaderTimeout: 10 * time.Second}
		stop := context.AfterFunc(ctx, func() { server.Close() })
		group.Go(func() {
			defer stop()
			defer cancel()
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				errs[i] = fmt.Errorf("serve %s: %w", target.Name(), err)
			}
		})
	}
	if s.sim.log.watched() {
		group.Go(func() { s.keepUp(ctx, elapsed) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// keepUp plays the simulation until ctx is done.
func (s *Server) keepUp(ctx context.Context, elapsed func() time.Duration) {
	ticker := time.NewTicker(playStep)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.mu.Lock()
			s.sim.AdvanceTo(elapsed())
			s.mu.Unlock()
		}
	}
}

// targetsPath is where each server lists all pages for Prometheus.
const targetsPath = "/targets"

// handler answers for one target at the paths that its engine has, and for all
// of them at targetsPath.
func (s *Server) handler(t *Target, elapsed func() time.Duration) http.Handler {
	mux := http.NewServeMux()
	serve := func(path, contentType string, read func() ([]byte, int)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			body, status := s.read(read, elapsed())
			reply(w, r, contentType, body, status)
		})
	}
	mux.HandleFunc("GET "+targetsPath, func(w http.ResponseWriter, r *http.Request) {
		body, status := s.read(func() ([]byte, int) { return s.list(hostOf(r)), http.StatusOK }, elapsed())
		reply(w, r, "application/json", body, status)
	})
	serve(t.Path(), t.ContentType(), func() ([]byte, int) { return t.AppendPage(nil) })
	if t.dialect.statsPath != "" {
		serve(t.dialect.statsPath, "application/json", t.engines[0].iterationStats)
	}
	return mux
}

// read plays the simulation up to elapsed and looks at it.
func (s *Server) read(look func() ([]byte, int), elapsed time.Duration) ([]byte, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sim.AdvanceTo(elapsed)
	return look()
}

// targetGroup is one page as Prometheus's http_sd reads it.
type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// list writes where all pages of this moment are, for who reaches this machine as host, and
// which labels a scrape gives them: a label of Prometheus's says the path.
func (s *Server) list(host string) []byte {
	groups := []targetGroup{}
	for i, target := range s.sim.Targets() {
		if !target.Exists() {
			continue
		}
		port := s.listeners[i].Addr().(*net.TCPAddr).Port
		labels := target.Labels()
		labels["__metrics_path__"] = target.Path()
		groups = append(groups, targetGroup{Targets: []string{net.JoinHostPort(host, strconv.Itoa(port))}, Labels: labels})
	}
	body, err := json.MarshalIndent(groups, "", "  ")
	if err != nil {
		panic(err) // words alone can be written
	}
	return body
}

// hostOf is the name by which a client reached the server.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

func reply(w http.ResponseWriter, r *http.Request, contentType string, body []byte, status int) {
	switch status {
	case http.StatusOK:
		w.Header().Set("Content-Type", contentType)
		w.Write(body) //nolint:errcheck // the scraper has gone; there is nobody to tell
	case TimedOut:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case NoAnswer:
		panic(http.ErrAbortHandler) // closes the connection without an answer
	default:
		http.Error(w, http.StatusText(status), status)
	}
}
