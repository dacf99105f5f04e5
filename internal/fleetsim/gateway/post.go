// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// errPermanent marks an answer that another try would get again.
var errPermanent = errors.New("it will not take them")

// deliver posts spans until they are taken. Between tries it waits, each time
// twice as long, but no longer than ctx lasts.
func (x *Exporter) deliver(ctx context.Context, traces ptrace.Traces, tries int) error {
	// On the wire a request to export is the same as the data of a file.
	body, err := new(ptrace.ProtoMarshaler).MarshalTraces(traces)
	if err != nil {
		return err
	}
	pause := firstPause
	for try := 1; ; try++ {
		err := x.post(ctx, body)
		x.tellOfChange(err)
		if err == nil || errors.Is(err, errPermanent) || try >= tries {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, mostPause)
	}
}

// tellOfChange tells when spans are no longer taken, and when they are again.
func (x *Exporter) tellOfChange(err error) {
	if refused := err != nil; refused != x.refused {
		x.refused = refused
		if refused {
			x.options.Tell(fmt.Sprintf("nobody takes the spans at %s: %v", x.url, err))
		} else {
			x.options.Tell("the spans are taken again at " + x.url)
		}
	}
}

// post sends a request once.
func (x *Exporter) post(ctx context.Context, body []byte) error {
	// What is under way when the exporter stops comes to its end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, x.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", errPermanent, err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := x.options.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil { // a connection that is read to its end is used again
		return err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("HTTP status %s", response.Status)
	default:
		return fmt.Errorf("%w: HTTP status %s", errPermanent, response.Status)
	}
}
