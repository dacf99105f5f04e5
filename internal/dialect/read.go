// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/llmfleet/llmfleet/internal/fleet"
)

// read reads one dialect file.
func read(file string, data []byte) (*Dialect, error) {
	root, err := parseYAML(file, data)
	if err != nil {
		return nil, err
	}
	d, err := readDialect(root)
	if err != nil {
		return nil, err
	}
	d.About = about(data)
	return d, nil
}

// about is the comment at the top of a file, as one text.
func about(data []byte) string {
	var words []string
	for line := range strings.Lines(string(data)) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(comment)...)
	}
	return strings.Join(words, " ")
}

func readDialect(root cursor) (*Dialect, error) {
	d := &Dialect{Labels: Labels{Model: []string{"model_name"}}}
	if err := root.mapping(d.field, "engine", "signals"); err != nil {
		return nil, err
	}
	if err := d.check(root); err != nil {
		return nil, err
	}
	d.number()
	return d, nil
}

// check holds what was read against itself.
func (d *Dialect) check(root cursor) error {
	if len(d.Carriers) > 0 && d.Prefix == "" {
		return root.find("carriers").errorf("there is no prefix for them to stand before")
	}
	if d.Prefix != "" && !prefixName.MatchString(d.Prefix) {
		return root.find("prefix").errorf("%q cannot stand before a name: use letters, digits and underscores, without the separator", d.Prefix)
	}
	for i, version := range d.Versions {
		if slices.Contains(d.Versions[:i], version) {
			return root.find("versions").errorf("%s stands twice", version)
		}
	}
	if d.Labels.Unless != "" && len(d.Labels.Reject) == 0 {
		return root.find("labels").find("unless").errorf("there is nothing to reject")
	}
	for _, f := range d.Forms {
		if err := f.check(d); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dialect) field(key string, value cursor) error {
	switch key {
	case "engine":
		return value.text(&d.Name)
	case "component":
		d.placed = true
		return choose(value, componentNames[:], &d.Component)
	case "prefix":
		return value.text(&d.Prefix)
	case "carriers":
		return value.texts(&d.Carriers)
	case "versions":
		return value.texts(&d.Versions)
	case "labels":
		d.labelled = true
		return value.mapping(d.Labels.field)
	case "signals":
		return value.mapping(d.signal)
	case "info":
		return value.mapping(d.info)
	case "ignore":
		return value.mapping(d.ignore)
	case "startup":
		return value.mapping(d.startup)
	default:
		return value.unknown()
	}
}

func (l *Labels) field(key string, value cursor) error {
	lists := map[string]*[]string{
		"model": &l.Model, "role": &l.Role, "ranks": &l.Ranks, "first": &l.First, "replica": &l.Replica,
		"tenants": &l.Tenants, "reasons": &l.Reasons, "pod": &l.Pod, "namespace": &l.Namespace, "node": &l.Node,
		"gpu_model": &l.GPUModel, "reject": &l.Reject,
	}
	switch list := lists[key]; {
	case key == "others":
		return value.texts(&l.Others)
	case key == "nobody":
		return value.texts(&l.Nobody)
	case list != nil:
		*list = nil
		if err := value.texts(list); err != nil {
			return err
		}
		*list = Spellings(*list)
		return nil
	case key == "unless":
		return value.text(&l.Unless)
	default:
		return value.unknown()
	}
}

// Spellings are labels as OpenTelemetry and as Prometheus spell them, in their order.
func Spellings(labels []string) []string {
	var all []string
	for _, label := range labels {
		all = append(all, flattened(label)...)
	}
	return all
}

// signal reads one line of `signals`: a form, or a list of forms.
func (d *Dialect) signal(key string, value cursor) error {
	signal, ok := fleet.ParseSignal(key)
	if !ok {
		return value.errorf("not a signal")
	}
	forms := []cursor{value}
	if value.node.Kind == yaml.SequenceNode && len(value.node.Content) > 0 {
		forms = value.items()
	}
	for _, at := range forms {
		f := &Form{Entry: &Entry{Dialect: d, Signal: signal}, at: at, keys: make(map[string]cursor)}
		if err := at.mapping(f.field, "type"); err != nil {
			return err
		}
		if f.Entry.Scale == 0 {
			f.Entry.Scale = 1
		}
		d.Forms = append(d.Forms, f)
	}
	return nil
}

func (f *Form) field(key string, value cursor) error {
	e := f.Entry
	f.keys[key] = value
	switch key {
	case "type":
		return choose(value, typeNames, &e.Kind)
	case "names", "add":
		if len(f.Names) > 0 {
			return value.errorf("there are names already: use either names or add")
		}
		f.Add = key == "add"
		f.at = value
		return value.texts(&f.Names)
	case "part":
		return choose(value, partNames[:], &e.Part)
	case "unit", "scale":
		if e.Scale != 0 {
			return value.errorf("there is a scale already: use either unit or scale")
		}
		if key == "unit" {
			return value.unit(f)
		}
		return value.scale(&e.Scale)
	case "range":
		if e.Signal.Kind() != fleet.Gauge {
			return value.errorf("%s is a %s and has no range", e.Signal, e.Signal.Kind())
		}
		return value.span(&e.Least, &e.Most)
	case "at_end":
		if e.Signal.Kind() == fleet.Gauge {
			return value.errorf("%s is a gauge, which is told at any time", e.Signal)
		}
		return value.flag(&e.AtEnd)
	case "keep":
		return value.mapping(filters(&e.Keep, false))
	case "only":
		return value.mapping(filters(&e.Only, true))
	case "since":
		return value.text(&f.Since)
	case "until":
		return value.text(&f.Until)
	default:
		return value.unknown()
	}
}

// filters reads labels with their values; anyValue allows for none.
func filters(into *[]LabelFilter, anyValue bool) func(string, cursor) error {
	return func(label string, value cursor) error {
		filter := LabelFilter{Spellings: flattened(label)}
		if !anyValue || value.node.Kind != yaml.SequenceNode || len(value.node.Content) > 0 {
			if err := value.values(&filter.Values); err != nil {
				return err
			}
		}
		*into = append(*into, filter)
		return nil
	}
}

// check holds a form against its dialect, once all is read.
func (f *Form) check(d *Dialect) error {
	e := f.Entry
	if len(f.Names) == 0 {
		return f.at.errorf("there are no names: use names, or add for those that are added up")
	}
	for _, name := range f.Names {
		if err := f.checkName(d, name); err != nil {
			return err
		}
	}
	for i, version := range []string{f.Since, f.Until} {
		if version != "" && !slices.Contains(d.Versions, version) {
			return f.keys[[]string{"since", "until"}[i]].errorf("%s is none of the versions of the file", version)
		}
	}
	if f.Since != "" && f.Until != "" && slices.Index(d.Versions, f.Since) > slices.Index(d.Versions, f.Until) {
		return f.keys["since"].errorf("%s is later than %s", f.Since, f.Until)
	}
	tells := e.Kind
	if e.Part != Whole {
		if e.Kind != fleet.Histogram {
			return f.keys["part"].errorf("only a histogram has a %s", e.Part)
		}
		tells = fleet.Counter
	}
	// A total may be declared as a gauge; nothing else is what it is not.
	if want := e.Signal.Kind(); tells != want && (want != fleet.Counter || tells != fleet.Gauge) {
		if want == fleet.Counter {
			return f.keys["type"].errorf("%s is a counter: read it from a counter, or with part: sum or part: count from a histogram", e.Signal)
		}
		return f.keys["type"].errorf("%s is a %s and cannot be read from a %s", e.Signal, want, tells)
	}
	return nil
}

// info reads one line of `info`.
func (d *Dialect) info(name string, value cursor) error {
	info := &Info{Dialect: d, Name: name}
	d.Infos = append(d.Infos, info)
	return value.mapping(func(key string, value cursor) error {
		lists := map[string]*[]string{
			"engine_version": &info.EngineVersion, "model_revision": &info.ModelRevision, "config": &info.Config,
		}
		if lists[key] == nil {
			return value.unknown()
		}
		return value.texts(lists[key])
	})
}

// ignore reads one line of `ignore`.
func (d *Dialect) ignore(why string, value cursor) error {
	ignored := Ignored{Why: why}
	err := value.texts(&ignored.Names)
	d.Ignored = append(d.Ignored, ignored)
	return err
}
