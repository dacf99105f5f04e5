// Copyright The llmfleet Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import "strings"

// keys are how keys and tokens begin that end up where a name should be. What is
// in lower case here is known in any case, the others as they are.
var keys = indexed(
	"sk-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", // OpenAI and those who do alike, Stripe
	"csk-", "gsk_", "hf_", "nvapi-", "pk-lf-", "pplx-", "r8_", "tgp_v1_", "xai-", // Cerebras, Groq, Hugging Face, NVIDIA, Langfuse, Perplexity, Replicate, Together, xAI
	"AKIA", "ASIA", "AIza", "ya29.", // AWS, Google
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", // GitHub, GitLab, Slack
	"eyJ",   // a JSON Web Token: base64url of `{"`
	"-----", // PEM
)

// titles are words that a credential follows: schemes of HTTP's Authorization,
// and what credentials are called in connection strings and settings.
var titles = indexed(
	"basic", "bearer", "digest", "negotiate", "token",
	"accountkey", "apikey", "api-key", "api_key", "x-api-key", "password", "sharedaccesskey",
)

var (
	// between are the bytes between the words of a text.
	between = set(" =:,;\"'`()[]{}<>|&?+")
	// after are those of them that stand after a title.
	after = set(" =:\"'")
)

func set(bytes string) *[256]bool {
	s := new([256]bool)
	for i := range len(bytes) {
		s[bytes[i]] = true
	}
	return s
}

// Credential tells whether a text looks as if it were, or held, a credential: if
// one of its words begins as keys do, or is a title of one. What is none and
// looks alike, as "Basic plan", costs no more than its name.
func Credential(text string) bool {
	for begin := 0; begin < len(text); {
		end := begin
		for end < len(text) && !between[text[end]] {
			end++
		}
		word := text[begin:end]
		if keys.begin(word) || end < len(text) && after[text[end]] && titles.have(word) {
			return true
		}
		begin = end + 1
	}
	return false
}

// phrases are texts by their first bytes, in whichever case.
type phrases [256][]phrase

type phrase struct {
	text  string
	exact bool // its case matters
}

func indexed(texts ...string) *phrases {
	p := new(phrases)
	for _, text := range texts {
		p[initial(text)] = append(p[initial(text)], phrase{text, text != strings.ToLower(text)})
	}
	return p
}

// initial is the same for a letter of either case.
func initial(text string) byte { return text[0] | 'a' - 'A' }

// begin tells whether a word begins as one of them and goes on.
func (p *phrases) begin(word string) bool {
	if word == "" {
		return false
	}
	for _, x := range p[initial(word)] {
		if len(word) > len(x.text) && x.is(word[:len(x.text)]) {
			return true
		}
	}
	return false
}

// have tells whether a word is one of them.
func (p *phrases) have(word string) bool {
	if word == "" {
		return false
	}
	for _, x := range p[initial(word)] {
		if x.is(word) {
			return true
		}
	}
	return false
}

func (x phrase) is(text string) bool {
	return x.text == text || !x.exact && strings.EqualFold(x.text, text)
}
