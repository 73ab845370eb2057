// A broker of another make, on its own: franz-go's kfake, which takes flags and is linked statically.
package main

import (
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// advertised is a listener whose address, for clients, is another than its own.
type advertised struct {
	net.Listener
	address net.Addr
}

func (a advertised) Addr() net.Addr { return a.address }

func main() {
	listen := flag.String("kafka-addr", "0.0.0.0:9092", "where it listens")
	told := flag.String("advertise-kafka-addr", "127.0.0.1:9092", "where clients find it")
	forgetful := flag.Bool("forgetful", false, "acknowledge records and keep none")
	data := flag.String("data", "", "where it keeps records; empty: in memory")
	flag.Parse()
	address, err := net.ResolveTCPAddr("tcp", *told)
	if err != nil {
		log.Fatal(err)
	}
	options := []kfake.Opt{kfake.NumBrokers(1), kfake.ListenFn(func(network, _ string) (net.Listener, error) {
		listener, err := net.Listen(network, *listen)
		return advertised{listener, address}, err
	})}
	if *forgetful {
		options = append(options, kfake.BlackholeProduce())
	}
	if *data != "" {
		options = append(options, kfake.DataDir(*data))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	cluster.Close()
}
