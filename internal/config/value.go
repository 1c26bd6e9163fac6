package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Simulated asks for simulated cards of one model.
type Simulated struct {
	Profile string // the simulator's name for the model, such as RTX_4090
	Count   int    // 1 to 64
}

// Image is an image that the rig has at hand and offers by name.
type Image struct {
	Name    string
	Archive string // path of an OCI archive; relative to the folder of the file that names it
}

// Bounds on what one knob may hold.
const (
	maxText      = 1024 // characters of a text or an item
	maxItems     = 64   // items of a list
	maxSimulated = 64   // cards of one line
)

// set reads a value into a spec's field. The value is a string from a flag or the environment, or what TOML made of it.
func (s spec[T]) set(into *T, value any) error {
	switch field := s.field(into).(type) {
	case *string:
		text, err := s.text(value)
		if err == nil {
			*field = text
		}
		return err
	case *[]string:
		list, err := s.list(value)
		if err == nil {
			*field = list
		}
		return err
	case *time.Duration:
		d, err := s.duration(value)
		if err == nil {
			*field = d
		}
		return err
	case *int64:
		n, err := s.number(value)
		if err == nil {
			*field = n
		}
		return err
	case *[]Simulated:
		return simulated(field, value)
	case *[]Image:
		return images(field, value)
	case *Programs:
		return programs(field, value)
	}
	return fmt.Errorf("has no place to be kept (%s)", s.Kind) // a mistake in the table, which a test looks for
}

func (s spec[T]) text(value any) (string, error) {
	text, ok := value.(string)
	switch {
	case !ok:
		return "", errors.New("is not a text in quotes")
	case len(text) > maxText:
		return "", fmt.Errorf("is longer than %d characters", maxText)
	case s.check == nil:
		return text, nil
	}
	return text, s.check(text)
}

func (s spec[T]) list(value any) ([]string, error) {
	items, err := items(value)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, item := range items {
		text, err := s.text(item)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

// items returns the items of a list: TOML's, or those between the commas of a string.
func items(value any) (list []any, err error) {
	switch value := value.(type) {
	case []any:
		list = value
	case string:
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
	default:
		return nil, errors.New("is not a list in brackets")
	}
	if len(list) > maxItems {
		return nil, fmt.Errorf("has more than %d items", maxItems)
	}
	return list, nil
}

func (s spec[T]) duration(value any) (time.Duration, error) {
	text, ok := value.(string)
	if !ok {
		return 0, errors.New(`is not a time in quotes such as "90s", "2h" or "7d"`)
	}
	if s.Kind == KindLimit && text == unlimited {
		return Unlimited, nil
	}
	d, err := ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("is wrong: %w", err)
	}
	return d, s.within(int64(d), func(n int64) string { return FormatDuration(time.Duration(n)) })
}

func (s spec[T]) number(value any) (int64, error) {
	switch s.Kind {
	case KindSize:
		return s.measure(value, `size in quotes such as "16GiB"`, ParseSize, formatSize)
	case KindRate:
		return s.measure(value, `rate in quotes such as "40Mbit"`, parseRate, formatRate)
	default:
	}
	n, ok := value.(int64)
	if text, is := value.(string); is {
		parsed, err := strconv.ParseInt(text, 10, 64)
		n, ok = parsed, err == nil
	}
	if !ok {
		return 0, errors.New("is not a whole number")
	}
	return n, s.within(n, func(n int64) string { return strconv.FormatInt(n, 10) })
}

// measure reads a number that comes with its unit.
func (s spec[T]) measure(value any, form string, parse func(string) (int64, error), say func(int64) string) (int64, error) {
	text, ok := value.(string)
	if !ok {
		return 0, errors.New("is not a " + form)
	}
	n, err := parse(text)
	if err != nil {
		return 0, fmt.Errorf("is wrong: %w", err)
	}
	return n, s.within(n, say)
}

func (s spec[T]) within(n int64, say func(int64) string) error {
	if (s.Min != 0 || s.Max != 0) && (n < s.Min || n > s.Max) {
		return fmt.Errorf("is %s, and must be from %s to %s", say(n), say(s.Min), say(s.Max))
	}
	return nil
}

func simulated(into *[]Simulated, value any) error {
	rows, err := pairs(value, "profile", "count")
	if err != nil {
		return err
	}
	*into = nil
	for _, row := range rows {
		count, err := strconv.Atoi(row[1])
		if err != nil || count < 1 || count > maxSimulated {
			return fmt.Errorf("asks for %.40q cards, and must ask for 1 to %d", row[1], maxSimulated)
		}
		if err := checkName(row[0]); err != nil {
			return err
		}
		*into = append(*into, Simulated{Profile: row[0], Count: count})
	}
	return nil
}

func images(into *[]Image, value any) error {
	rows, err := pairs(value, "name", "archive")
	if err != nil {
		return err
	}
	*into = nil
	for _, row := range rows {
		if err := checkName(row[0]); err != nil {
			return err
		}
		if row[1] == "" || len(row[1]) > maxText {
			return errors.New("has an archive without a path, or with one that is too long")
		}
		*into = append(*into, Image{Name: row[0], Archive: row[1]})
	}
	return nil
}

// pairs reads a list of inline tables with two keys, or the same as "one=two,one=two".
func pairs(value any, first, second string) ([][2]string, error) {
	list, err := items(value)
	if err != nil {
		return nil, err
	}
	var rows [][2]string
	for _, item := range list {
		form := fmt.Errorf("holds an item that is not {%s = …, %s = …}", first, second)
		switch item := item.(type) {
		case string:
			one, two, ok := strings.Cut(item, "=")
			if !ok {
				return nil, form
			}
			rows = append(rows, [2]string{one, two})
		case map[string]any:
			one, has := item[first].(string)
			if !has || item[second] == nil || len(item) != 2 {
				return nil, form
			}
			rows = append(rows, [2]string{one, fmt.Sprint(item[second])})
		default:
			return nil, form
		}
	}
	return rows, nil
}
