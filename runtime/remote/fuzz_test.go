//go:build linux

package remote

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

func FuzzCreateRequest(f *testing.F) {
	f.Add([]byte(`{"Spec":{"ID":"a","Image":"sha256:00","Args":null},"Args":["AP8="],"Secrets":{"k":"AA=="}}`))
	f.Add([]byte(`{"Spec":{},"Spec":{}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r createRequest
		if err := decode(data, &r); err != nil {
			if !errors.Is(err, errMalformed) {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		// What we write of what we read is read as the same job.
		spec := r.unpack()
		again, err := json.Marshal(packSpec(spec))
		if err != nil {
			t.Fatal(err)
		}
		var second createRequest
		if err := decode(again, &second); err != nil {
			t.Fatal(err)
		}
		if spec.Validate() == nil && spec.Hash() != second.unpack().Hash() {
			t.Errorf("%+v and %+v", spec, second.unpack())
		}
		if !reflect.DeepEqual(spec.Args, second.unpack().Args) && len(spec.Args) > 0 {
			t.Errorf("arguments %q and %q", spec.Args, second.unpack().Args)
		}
	})
}
