package main

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"haggle/internal/config"
)

// config loads the configuration, once.
func (p *program) config() (config.Agent, error) {
	if p.loaded != nil {
		return *p.loaded, nil
	}
	c, err := config.LoadAgent(config.Flags{Home: p.home})
	if err != nil {
		return config.Agent{}, err
	}
	p.loaded = &c
	return c, nil
}

// logger makes a daemon's logger as it is configured.
func logger(w io.Writer, least, format string) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(least)); err != nil {
		return nil, &config.Error{Key: "log_level", Problem: err.Error(), Hint: "debug, info, warn or error"}
	}
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return slog.New(slog.NewTextHandler(w, options)), nil
}

// labHome returns the home that was asked for, or "" for a lab's usual place.
func (p *program) labHome() string {
	if p.home != "" {
		return p.home
	}
	return os.Getenv("HAGGLE_HOME")
}

// quoteShell writes a word so that a POSIX shell reads it back.
func quoteShell(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+,:@%=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
