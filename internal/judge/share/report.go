// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package share

// tell writes the report of the pane.
func (j *Judge) tell(p *Pane, reason Withheld) *Report {
	m, r := &j.memory, &j.report
	r.ITL = figure(NoITL, 0)
	if p.ITLCount > 0 {
		r.ITL = figure(Given, p.ITLSum/p.ITLCount)
	}
	warming := Given
	if m.Panes < warmup {
		warming = Warming
	}
	unknown := reason // of who is one tenant too many
	if reason == Given {
		unknown = Warming
	}
	r.UsualITL = figure(warming, m.ITL.mean(0))
	r.Slope = figure(reason, j.slope)
	r.Tenants = r.Tenants[:0]
	for i := range p.Tenants {
		name := p.Tenants[i].Name
		a := j.accounts[name]
		if a == nil {
			none := figure(unknown, 0)
			r.Tenants = append(r.Tenants, Verdict{Name: name, UsualShare: figure(Warming, 0), Excess: none, Score: none})
			continue
		}
		v := Verdict{
			Name:       name,
			UsualShare: figure(warming, a.Share.mean(0)),
			Excess:     figure(reason, a.excess),
			Score:      figure(reason, a.score),
			Noisy:      a.Noisy,
		}
		if a.Noisy {
			v.Since = a.Began
		}
		r.Tenants = append(r.Tenants, v)
	}
	return r
}

func figure(reason Withheld, value float64) Figure {
	if reason != Given {
		return Figure{Withheld: reason}
	}
	return Figure{Value: value}
}
