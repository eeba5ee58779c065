// Command quantity-table prints how apimachinery reads and writes quantities: the table that crds is tested with.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	fmt.Fprintln(w, "# text, what apimachinery writes for it (or ! and the error), units and milli rounded up")
	emit := func(s string) {
		var q resource.Quantity
		b, _ := json.Marshal(s)
		if err := json.Unmarshal(b, &q); err != nil {
			fmt.Fprintf(w, "%s\t!%v\n", s, err)
			return
		}
		out, _ := json.Marshal(&q)
		var t string
		json.Unmarshal(out, &t)
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\n", s, t, q.Value(), q.MilliValue())
	}
	for _, s := range []string{"0", "+5", "-5", "05", "005k", "1000m", "1500m", "1e3", "1E3", "12e3", "12E3", "1e0", "1e-3", "1e4", "1.5", "1.500k", "1.234k", "0.5", ".5", "5.", ".", "+", "-", "abc", "1x", "1Kib", "1ki", "1K", "1 ", "1m2", "1e", "1e+3", "1e1.5", "1Ki", "1024", "1024Ki", "1023Ki", "8Ki", "16Gi", "1.5Gi", "0.5Ki", "0.5Gi", "0.1Ki", "0.001Ki", "1Ei", "7Ei", "8Ei", "9Ei", "100Ei", "9223372036854775807", "9223372036854775808", "1n", "0.1n", "0.5n", "1.1n", "-0.1n", "999n", "1000n", "1u", "100u", "1E", "10E", "1000E", "1P", "1T", "1000000", "1000000k", "123456789012345678901", "-1Ki", "-1.5Gi", "0Ki", "0.0", "00", "0m", "-0", "+0", "1.", "1.0", "1.00", "1.000", "10.000", "100m", "1100m", "2048Mi", "2047Mi", "1e9", "1e10", "1e18", "1e19", "5e-9", "5e-10", "36Gi", "1k", "500m", "2n", "3.0Ki", "1.5Ki"} {
		emit(s)
	}
	r := rand.New(rand.NewSource(1))
	suf := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e-3", "E2", "e5", "e-6"}
	for i := 0; i < 500; i++ {
		n := r.Intn(7) + 1
		s := ""
		if r.Intn(8) == 0 {
			s = "-"
		}
		for j := 0; j < n; j++ {
			d := r.Intn(10)
			if r.Intn(3) == 0 {
				d = 0
			}
			s += fmt.Sprint(d)
		}
		if r.Intn(3) == 0 {
			s += "."
			for j := r.Intn(5); j > 0; j-- {
				s += fmt.Sprint(r.Intn(10))
			}
		}
		x := suf[r.Intn(len(suf))]
		if n > 5 && (x == "E" || x == "P" || x == "Ei") {
			x = "M"
		}
		emit(s + x)
	}
}
