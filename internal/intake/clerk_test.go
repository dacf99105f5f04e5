// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/llmfleet/llmfleet/internal/dialect"
	"github.com/llmfleet/llmfleet/internal/fleet"
	"github.com/llmfleet/llmfleet/internal/window"
)

const anHour = window.Instant(time.Hour)

func newClerk() *Clerk {
	const maxReplicas = 2
	d := fleet.NewDirectory(fleet.DirectoryOptions{
		Order: []fleet.Origin{fleet.FromAttributes, fleet.FromEngine}, MaxReplicas: maxReplicas, ForgetAfter: time.Hour,
	})
	c := NewClerk(ClerkOptions{Dialects: dialect.Builtin(), MaxReplicas: maxReplicas}, d)
	c.Sweep(anHour)
	return c
}

func resourceOf(instance string) pcommon.Map {
	m := pcommon.NewMap()
	m.PutStr("service.instance.id", instance)
	return m
}

// waitingOf is a page of a vLLM engine with one point for each rank.
func waitingOf(instance string, ranks int) pmetric.ResourceMetrics {
	rm := pmetric.NewResourceMetrics()
	resourceOf(instance).CopyTo(rm.Resource().Attributes())
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:num_requests_waiting")
	m.SetEmptyGauge()
	for rank := range ranks {
		attributes := m.Gauge().DataPoints().AppendEmpty().Attributes()
		attributes.PutStr("model_name", "m")
		attributes.PutStr("role", fmt.Sprint("role of ", rank))
	}
	return rm
}

// TestEndpoints reads addresses as gateways write them.
func TestEndpoints(t *testing.T) {
	for _, want := range []struct{ text, host, ip string }{
		{"10.0.0.7:8000", "10.0.0.7:8000", "10.0.0.7"},
		{" 10.0.0.7:8000 ", "10.0.0.7:8000", "10.0.0.7"},
		{"10.0.0.7:8000,10.0.0.8:8000", "10.0.0.7:8000", "10.0.0.7"},
		{"http://10.0.0.7:8000/v1/chat", "10.0.0.7:8000", "10.0.0.7"},
		{"[fd00::7]:8000", "[fd00::7]:8000", "fd00::7"},
		{"10.0.0.7", "10.0.0.7", "10.0.0.7"},
		{"fd00::7", "fd00::7", "fd00::7"},
		{"[fd00::7]", "[fd00::7]", "fd00::7"},
		{"[::ffff:10.0.0.7]:8000", "[::ffff:10.0.0.7]:8000", "10.0.0.7"},
		{"https://user:secret@10.0.0.7:8000/v1", "10.0.0.7:8000", "10.0.0.7"},
		{"engine-0.engines:8000", "engine-0.engines:8000", ""},
		{"127.0.0.1:8000", "127.0.0.1:8000", ""},
		{"", "", ""},
	} {
		host, ip := endpoint(want.text)
		assert.Equal(t, want.host, host, want.text)
		assert.Equal(t, want.ip, ip, want.text)
	}
}

// TestDesksAreBoundedAndExpire: four for each replica that may be known. Who
// finds no room is read anew each time, and counted.
func TestDesksAreBoundedAndExpire(t *testing.T) {
	c := newClerk()
	for i := range 8 {
		c.Desk(resourceOf(fmt.Sprint(i)))
	}
	assert.Len(t, c.desks, 8)
	assert.Zero(t, c.Tally().Ignored(Limit))
	first := c.Desk(resourceOf("0"))
	assert.Same(t, first, c.Desk(resourceOf("0")))
	tooMany, again := c.Desk(resourceOf("8")), c.Desk(resourceOf("8"))
	assert.NotSame(t, tooMany, again)
	assert.EqualValues(t, 2, c.Tally().Ignored(Limit))

	c.Sweep(anHour + anHour/2)
	c.Desk(resourceOf("0"))
	c.Sweep(2*anHour + 1)
	assert.Len(t, c.desks, 1)
	assert.Same(t, first, c.Desk(resourceOf("0")))
}

// TestFacesAreBounded: a page may have any labels. One point too many has its
// identity all the same.
func TestFacesAreBounded(t *testing.T) {
	c := newClerk()
	page := new(Page)
	rm := waitingOf("a", maxFaces+1)
	c.Metrics(rm, page)
	for _, p := range page.Sighted[0].Metric.Gauge().DataPoints().All() {
		face, _ := page.Face(page.Sighted[0].Entry(p.Attributes()), p.Attributes(), true)
		require.NotNil(t, face.Resident)
		assert.Equal(t, "m", face.Model())
	}
	assert.Len(t, page.Desk.faces, maxFaces)
	assert.EqualValues(t, maxFaces, c.faces.Load())
}

// TestFacesOfForgottenDesksLeaveRoom, and so do those of desks that found none.
func TestFacesOfForgottenDesksLeaveRoom(t *testing.T) {
	c := newClerk()
	page := new(Page)
	for i := range 9 { // one more than there is room for
		c.Metrics(waitingOf(fmt.Sprint(i), 3), page)
		for _, p := range page.Sighted[0].Metric.Gauge().DataPoints().All() {
			page.Face(page.Sighted[0].Entry(p.Attributes()), p.Attributes(), true)
		}
	}
	c.Sweep(anHour + 1)
	assert.EqualValues(t, 8*3, c.faces.Load())
	c.Sweep(2*anHour + 2)
	assert.Zero(t, c.faces.Load())
}

// TestNothingPointsIntoPages: what is known stays what it is when the memory of
// the page is used for something else.
func TestNothingPointsIntoPages(t *testing.T) {
	c := newClerk()
	page := new(Page)
	rm := waitingOf("10.0.0.7:8000", 1)
	c.Metrics(rm, page)
	attributes := page.Sighted[0].Metric.Gauge().DataPoints().At(0).Attributes()
	face, _ := page.Face(page.Sighted[0].Entry(attributes), attributes, true)
	page.Forget()
	attributes.PutStr("role", "else")
	rm.Resource().Attributes().PutStr("service.instance.id", "else")
	assert.Equal(t, "10.0.0.7:8000", face.Resident.ID)
	assert.Equal(t, "role of 0", face.Resident.Facts()[fleet.Role])
	assert.Same(t, face.Resident, c.Endpoint("10.0.0.7:9000"))
	assert.Same(t, face.Resident, c.Desk(resourceOf("10.0.0.7:8000")).Own())
	assert.Nil(t, c.Desk(resourceOf("else")).Own())
}

// TestExpectedSignals: of a component that was never heard, all that any of its
// dialects has; then what those have that were heard.
func TestExpectedSignals(t *testing.T) {
	c := newClerk()
	all := c.Expected(dialect.Engine)
	assert.Contains(t, all, fleet.TPOT)
	assert.IsIncreasing(t, all)
	c.Metrics(waitingOf("a", 1), new(Page))
	assert.Equal(t, anHour, c.Heard(dialect.Engine, fleet.Waiting))
	assert.Zero(t, c.Heard(dialect.Engine, fleet.Running))
	own := map[fleet.Signal]bool{}
	for _, d := range dialect.Builtin().Dialects() {
		for _, f := range d.Forms {
			if d.Name == "vllm" {
				own[f.Entry.Signal] = true
			}
		}
	}
	assert.Len(t, c.Expected(dialect.Engine), len(own))
	for _, s := range c.Expected(dialect.Engine) {
		assert.True(t, own[s], s)
	}
}
