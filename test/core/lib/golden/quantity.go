// Prints what apimachinery makes of quantities, for quantity-golden.test.ts: go run quantity.go > quantity.json
package main

import (
	"encoding/json"
	"math/rand"
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

var random = rand.New(rand.NewSource(7))

func oneOf[T any](list ...T) T { return list[random.Intn(len(list))] }

func digits(length int) string {
	text := ""
	for range length {
		text += oneOf("0", "0", "0", "1", "2", "4", "5", "8", "9")
	}
	return text
}

func quantity() string {
	text := oneOf("", "", "", "+", "-") + digits(oneOf(0, 1, 1, 2, 3, 4, 6, 12, 15, 18, 19, 20, 25))
	if random.Intn(3) == 0 {
		text += "." + digits(oneOf(0, 1, 2, 3, 6, 9, 10, 12, 18))
	}
	return text + oneOf("", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
		"e3", "E-2", "e+5", "e0", "e-9", "e18", "K", "x", "ki", "e", "E+", "mi")
}

type row struct {
	Text    string `json:"text"`
	Error   string `json:"error,omitempty"`
	Shown   string `json:"shown,omitempty"`
	Rounded string `json:"rounded,omitempty"`
	Value   string `json:"value,omitempty"`
	Milli   string `json:"milli,omitempty"`
	// the quantity before it
	Other   string `json:"other,omitempty"`
	Sum     string `json:"sum,omitempty"`
	InMilli string `json:"sumInMilli,omitempty"`
	Compare int    `json:"compare"`
}

func main() {
	rows := []row{}
	other := resource.MustParse("0")
	otherText := "0"
	for range 450 {
		text := quantity()
		parsed, err := resource.ParseQuantity(text)
		if err != nil {
			rows = append(rows, row{Text: text, Error: err.Error()})
			continue
		}
		shown, rounded, sum, compared := parsed.DeepCopy(), parsed.DeepCopy(), parsed.DeepCopy(), parsed.DeepCopy()
		rounded.RoundUp(resource.Milli)
		sum.Add(other.DeepCopy())
		rows = append(rows, row{
			Text: text, Shown: shown.String(), Rounded: rounded.String(),
			Value: strconv.FormatInt(compared.Value(), 10), Milli: strconv.FormatInt(compared.MilliValue(), 10),
			Other: otherText, Sum: sum.String(), InMilli: strconv.FormatInt(sum.MilliValue(), 10), Compare: compared.Cmp(other),
		})
		other, otherText = parsed, text
	}
	if err := json.NewEncoder(os.Stdout).Encode(rows); err != nil {
		panic(err)
	}
}
