package lab

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"haggle/internal/config"
)

// model is what one rig of a lab offers. Prices are near what the market asked for such cards in 2026.
type model struct {
	profile string
	count   int
	price   string // per slot-hour
}

func models() []model {
	return []model{
		{"RTX_4090", 2, "0.36"},
		{"RTX_3090", 2, "0.18"},
		{"H100_SXM", 2, "2.40"},
		{"A100_SXM", 1, "1.60"},
	}
}

func (c *Config) rigHome(n int) string { return filepath.Join(c.Home, "rig-"+strconv.Itoa(n)) }

// rigConfig makes the configuration of the n-th rig. Its port is chosen once and kept, so that a rig that comes back is
// found where it was.
func (c *Config) rigConfig(n int, network, image string, members []string) (config.Rig, error) {
	home := c.rigHome(n)
	cfg, err := config.LoadRig(config.Flags{Home: home, Values: map[string]string{"network": network}, Env: noEnvironment})
	if err != nil {
		return cfg, err
	}
	port, err := freePort()
	if err != nil {
		return cfg, err
	}
	m := models()[(n-1)%len(models())]
	cfg.Name = filepath.Base(home)
	cfg.Listen = []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port), fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", port)}
	cfg.Bootstrap = members
	cfg.Cards.Simulated = []config.Simulated{{Profile: m.profile, Count: m.count}}
	cfg.Images = []config.Image{{Name: ImageName, Archive: image}}
	cfg.Prices.Slot = m.price
	cfg.Pay.Programs = c.rigTakes(cfg.Name)
	cfg.Rules.Min = time.Second
	cfg.Rules.Notice = 10 * time.Second // nobody in a lab waits two minutes for a job that does not end
	return cfg, nil
}

func noEnvironment(string) (string, bool) { return "", false }

// freePort returns a port of loopback that is free for TCP and UDP at this moment.
func freePort() (int, error) {
	for range 20 {
		tcp, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // closed at once
		if err != nil {
			return 0, err
		}
		port := tcp.Addr().(*net.TCPAddr).Port
		udp, err := net.ListenPacket("udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // closed at once
		_ = tcp.Close()
		if err == nil {
			return port, udp.Close()
		}
	}
	return 0, fmt.Errorf("no port of loopback is free for TCP and UDP")
}
