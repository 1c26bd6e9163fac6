package lab

import (
	"crypto/rand"
	"os"
	"path/filepath"
	goruntime "runtime"

	"haggle/internal/config"
)

// method is the payment program of labs: play money, whose bank is a folder of the lab.
const method = "lab"

// playMoney reports whether the payment program of labs lies beside haggle, where rigs and agents look for it. Without it a lab
// does without paying.
func (c *Config) playMoney() bool {
	program, err := filepath.EvalSymlinks(c.Haggle)
	if err != nil {
		return false
	}
	path := filepath.Join(filepath.Dir(program), "haggle-pay-"+method)
	if goruntime.GOOS == "windows" {
		path += ".exe"
	}
	_, err = os.Stat(path)
	return err == nil
}

func (c *Config) bank() string { return filepath.Join(c.Home, "bank") }

// rigTakes is how a rig takes play money: into an account of its own.
func (c *Config) rigTakes(rig string) config.Programs {
	if !c.playMoney() {
		return nil
	}
	return config.Programs{method: {"bank": c.bank(), "account": rig}}
}

// agentPays is how the agent spends play money: from an account that only it can spend from.
func (c *Config) agentPays() config.Programs {
	if !c.playMoney() {
		return nil
	}
	return config.Programs{method: {"bank": c.bank(), "secret": rand.Text()}}
}
