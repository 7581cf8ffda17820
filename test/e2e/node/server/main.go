// A sidecar that hands its traffic over: two of them listen on one port, and what waits for one that ends is the other's.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// SO_REUSEPORT of Linux, which package syscall does not name.
const reusePort = 0xf

// Longer than an answer takes.
const drain = 2 * time.Second

func main() {
	// Connections that the kernel has taken and nobody accepted yet go to the other listener (Linux 5.14).
	if err := os.WriteFile("/proc/sys/net/ipv4/tcp_migrate_req", []byte("1"), 0o644); err != nil {
		log.Fatal(err)
	}
	listening := net.ListenConfig{Control: func(_, _ string, connection syscall.RawConn) error {
		var failure error
		err := connection.Control(func(descriptor uintptr) {
			failure = syscall.SetsockoptInt(int(descriptor), syscall.SOL_SOCKET, reusePort, 1)
		})
		if err != nil {
			return err
		}
		return failure
	}}
	listener, err := listening.Listen(context.Background(), "tcp", ":8080")
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(answer, os.Getenv("IMAGE"))
	})}
	server.SetKeepAlivesEnabled(false)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if err := os.WriteFile("/tmp/ready", nil, 0o644); err != nil {
		log.Fatal(err)
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	select {
	case err := <-ended:
		log.Fatal(err)
	case <-told:
		// Takes no more, and answers what it has taken: http.Server.Shutdown forgets what was taken at this moment.
		if err := listener.Close(); err != nil {
			log.Fatal(err)
		}
		time.Sleep(drain)
	}
}
