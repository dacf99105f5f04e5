// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package fleetsim

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TraceFormat names how a trace is written.
type TraceFormat string

// The trace formats, each named after the public set that uses it.
const (
	// Azure is CSV with TIMESTAMP, ContextTokens, GeneratedTokens, from
	// AzurePublicDataset.
	Azure TraceFormat = "azure"
	// Mooncake is JSON lines with timestamp (ms), input_length, output_length.
	Mooncake TraceFormat = "mooncake"
	// ServeGen is CSV with client, t_s, rate_rps, cv, pattern: the rate of each
	// client in steps of ten minutes, from which arrivals are drawn.
	ServeGen TraceFormat = "servegen"
)

const azureTime = "2006-01-02 15:04:05.9999999"

// replay yields the arrivals of a trace, from its first at time 0.
type replay struct {
	arrivals []arrival
}

func (r *replay) next() (arrival, bool) {
	if len(r.arrivals) == 0 {
		return arrival{}, false
	}
	a := r.arrivals[0]
	r.arrivals = r.arrivals[1:]
	return a, true
}

func openTrace(a *Arrivals, l *lengths, clock *rand.Rand, r *roster) (arrivalSource, error) {
	arrivals, err := fromFile(a.File, func(text io.Reader) ([]arrival, error) { return readTrace(text, a.Format, l, clock, r) })
	if err != nil {
		return nil, err
	}
	if len(arrivals) == 0 {
		return nil, fmt.Errorf("trace %s holds no requests", a.File)
	}
	sortArrivals(arrivals)
	first := arrivals[0].at
	for i := range arrivals {
		arrivals[i].at = (arrivals[i].at - first) / a.Speed
	}
	return &replay{arrivals: arrivals}, nil
}

// fromFile reads a trace, plain or .gz.
func fromFile[T any](file string, read func(io.Reader) (T, error)) (trace T, err error) {
	packed, err := os.Open(file)
	if err != nil {
		return trace, fmt.Errorf("open trace: %w", err)
	}
	defer packed.Close()
	var text io.Reader = bufio.NewReader(packed)
	if strings.HasSuffix(file, ".gz") {
		if text, err = gzip.NewReader(text); err != nil {
			return trace, fmt.Errorf("open trace %s: %w", file, err)
		}
	}
	if trace, err = read(text); err != nil {
		return trace, fmt.Errorf("trace %s: %w", file, err)
	}
	return trace, nil
}

func sortArrivals(all []arrival) {
	slices.SortStableFunc(all, func(x, y arrival) int { return cmp.Compare(x.at, y.at) })
}

func readTrace(text io.Reader, format TraceFormat, l *lengths, clock *rand.Rand, r *roster) ([]arrival, error) {
	switch format {
	case Mooncake:
		return readMooncake(text)
	case ServeGen:
		return readServeGen(text, l, clock, r)
	default:
		return readAzure(text)
	}
}

func readAzure(text io.Reader) ([]arrival, error) {
	rows, err := readCSV(text, "TIMESTAMP", "ContextTokens", "GeneratedTokens")
	if err != nil {
		return nil, err
	}
	var arrivals []arrival
	var origin time.Time
	for i, row := range rows {
		at, timeErr := time.Parse(azureTime, row[0])
		prompt, promptErr := strconv.Atoi(row[1])
		output, outputErr := strconv.Atoi(row[2])
		if err := errors.Join(timeErr, promptErr, outputErr); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+2, err)
		}
		if i == 0 {
			origin = at
		}
		arrivals = append(arrivals, arrival{at: at.Sub(origin).Seconds(), prompt: max(prompt, 1), output: max(output, 1)})
	}
	return arrivals, nil
}

func readMooncake(text io.Reader) ([]arrival, error) {
	var arrivals []arrival
	decoder := json.NewDecoder(text)
	for {
		var row struct {
			Timestamp    float64 `json:"timestamp"`
			InputLength  int     `json:"input_length"`
			OutputLength int     `json:"output_length"`
		}
		err := decoder.Decode(&row)
		if errors.Is(err, io.EOF) {
			return arrivals, nil
		}
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", len(arrivals)+1, err)
		}
		arrivals = append(arrivals, arrival{at: row.Timestamp / 1000, prompt: max(row.InputLength, 1), output: max(row.OutputLength, 1)})
	}
}

// clientRate is how one client sends during one step of a ServeGen trace.
type clientRate struct {
	from, rate, cv float64
	shape          Shape
}

// serveGenStep is how long a rate holds, in seconds.
const serveGenStep = 600

// readServeGen draws each client's arrivals step by step: a renewal process of
// the step's rate, whose gaps have the step's coefficient of variation and
// shape. A step's first gap is drawn as if the process had just sent. The clients
// are the tenants.
func readServeGen(text io.Reader, l *lengths, clock *rand.Rand, r *roster) ([]arrival, error) {
	rows, err := readCSV(text, "client", "t_s", "rate_rps", "cv", "pattern")
	if err != nil {
		return nil, err
	}
	var arrivals []arrival
	var clients []string
	for i, row := range rows {
		step, err := parseClientRate(row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+2, err)
		}
		if step.rate <= 0 {
			continue
		}
		client := slices.Index(clients, row[0])
		if client < 0 {
			client = len(clients)
			clients = append(clients, row[0])
		}
		gap := newVariate(step.shape, step.cv)
		for at := gap.draw(clock) / step.rate; at < serveGenStep; at += gap.draw(clock) / step.rate {
			arrivals = append(arrivals, arrival{at: step.from + at, tenant: client + 1})
		}
	}
	sortArrivals(arrivals)
	for i := range arrivals {
		l.fill(&arrivals[i])
	}
	r.clients(clients, arrivals)
	return arrivals, nil
}

func parseClientRate(row []string) (clientRate, error) {
	var c clientRate
	for i, field := range []*float64{&c.from, &c.rate, &c.cv} {
		v, err := strconv.ParseFloat(row[i+1], 64)
		if err != nil {
			return c, err
		}
		*field = v
	}
	switch row[4] {
	case "Gamma":
		c.shape = ShapeGamma
	case "Weibull":
		c.shape = ShapeWeibull
	default:
		return c, fmt.Errorf("pattern is %q: only Gamma and Weibull are known", row[4])
	}
	return c, nil
}

// readCSV reads all rows below a header that must be exactly as given.
func readCSV(text io.Reader, header ...string) ([][]string, error) {
	rows, err := csv.NewReader(text).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !slices.Equal(rows[0], header) {
		return nil, fmt.Errorf("the first line must be %s: check arrivals.format", strings.Join(header, ","))
	}
	return rows[1:], nil
}
