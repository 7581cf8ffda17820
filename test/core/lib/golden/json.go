// Prints what Go's encoding/json says of texts that are no JSON, for json-problem.test.ts: go run json.go > json.json
package main

import (
	"encoding/json"
	"os"
	"regexp"
	"unicode/utf8"
)

var documents = []string{
	`{"a":[1,-2.5e+3,0.25,7E-1],"b":{},"c":[]}`,
	`{ "key" : [ true , false , null ] , "other" : "x" }`,
	`["\"\\\/\b\f\n\r\t\u00e9","z",10,-0]`,
	"\t{\n\"a\":\r1 }",
	`"text"`,
	`-1.5`,
	`true`,
}

var insertions = []string{
	"x", `"`, "'", ",", ":", "{", "}", "[", "]", "0", "1", "-", "+", ".", "e", "E", "t", "u", "\\", "/", " ", "\n",
	"\x00", "\x07", "\x1f", "\x7f", "é", "‰",
}

// Of all texts that are wrong in one way, or not at all, so many are kept.
const perKind = 15

var character = regexp.MustCompile(`character '.*' `)

func main() {
	rows := [][2]string{}
	seen := map[string]bool{}
	counts := map[string]int{}
	try := func(text string) {
		var value any
		message := ""
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			message = err.Error()
		}
		kind := character.ReplaceAllString(message, "")
		if seen[text] || seen[message] || !utf8.ValidString(text) || counts[kind] == perKind {
			return
		}
		seen[text], seen[message] = true, message != ""
		counts[kind]++
		rows = append(rows, [2]string{text, message})
	}
	for _, document := range documents {
		for at := range len(document) + 1 {
			try(document[:at])
			for _, inserted := range insertions {
				try(document[:at] + inserted + document[at:])
				if at < len(document) {
					try(document[:at] + inserted + document[at+1:])
				}
			}
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(rows); err != nil {
		panic(err)
	}
}
