package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

const (
	protocolID   = "/bare/1"
	streamBuffer = 64 << 10 // what is copied at a time: the largest packet of a stream
)

// serve makes a host on TCP, with libp2p's own choice of security, and says its address.
func serve(handle network.StreamHandler) (host.Host, error) {
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"))
	if err != nil {
		return nil, err
	}
	h.SetStreamHandler(protocolID, handle)
	addrs, err := peer.AddrInfoToP2pAddrs(&peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()})
	if err != nil || len(addrs) == 0 {
		return nil, errors.Join(err, errors.New("the host has no address"), h.Close())
	}
	fmt.Fprintln(os.Stderr, addrs[0])
	return h, nil
}

func listen() error {
	ended, gone := make(chan error, 1), make(chan struct{}, 1)
	h, err := serve(func(s network.Stream) {
		err := plainCopy(os.Stdout, s)
		_, answerErr := s.Write([]byte{0})
		ended <- errors.Join(err, answerErr, s.Close())
	})
	if err != nil {
		return err
	}
	h.Network().Notify(&network.NotifyBundle{DisconnectedF: func(network.Network, network.Conn) {
		select {
		case gone <- struct{}{}:
		default:
		}
	}})
	err = <-ended
	if err == nil {
		<-gone // to end before the answer is read would lose it
	}
	return errors.Join(err, h.Close())
}

func dial(address string) error {
	info, err := peer.AddrInfoFromString(address)
	if err != nil {
		return err
	}
	h, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := h.Connect(ctx, *info); err != nil {
		return errors.Join(err, h.Close())
	}
	s, err := h.NewStream(ctx, info.ID, protocolID)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	err = errors.Join(plainCopy(s, os.Stdin), s.CloseWrite())
	if err == nil {
		_, err = io.ReadFull(s, make([]byte, 1)) // the other side answers when all is written
	}
	return errors.Join(err, h.Close())
}

func echo() error {
	h, err := serve(func(s network.Stream) {
		_ = errors.Join(plainCopy(s, s), s.Close()) // the other side has gone
	})
	if err != nil {
		return err
	}
	untilInputEnds()
	return h.Close()
}

// plainCopy copies with read and write.
func plainCopy(to io.Writer, from io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, streamBuffer))
	return err
}
