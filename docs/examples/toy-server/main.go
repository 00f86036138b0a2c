// A member of a Nacos cluster in a hundred lines, wrong on purpose: it registers instances and tells the other members,
// but forgets their metadata on the way, and tells nobody when a client has left. It has no HTTP API, no leases, and
// believes every VERIFY. Distrocheck says so; see docs/how-to/your-own-server.md.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/protowire"
)

type object = map[string]any

// Messages travel as they are: the body is JSON, its type is in the metadata.
type raw struct{}

func (raw) Name() string                       { return "proto" }
func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = append([]byte{}, data...); return nil }

func encode(kind string, body object) *[]byte {
	text, _ := json.Marshal(body)
	metadata := protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), kind)
	metadata = protowire.AppendString(protowire.AppendTag(metadata, 8, protowire.BytesType), "127.0.0.1")
	message := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), metadata)
	value := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), text)
	message = protowire.AppendBytes(protowire.AppendTag(message, 3, protowire.BytesType), value)
	return &message
}

// field is the first length-delimited field of that number.
func field(message []byte, wanted protowire.Number) []byte {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		size := protowire.ConsumeFieldValue(number, kind, message[n:])
		if number == wanted && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[n:])
			return value
		}
		message = message[n+size:]
	}
	return nil
}

func decode(message []byte) (kind string, body object) {
	_ = json.Unmarshal(field(field(message, 3), 2), &body)
	return string(field(field(message, 2), 3)), body
}

var (
	lock      sync.Mutex
	instances = map[string]map[string]object{} // client -> service -> instance
	others    []string
	address   string
)

func clientOf(ctx context.Context) string {
	from, _ := peer.FromContext(ctx)
	return fmt.Sprintf("1700000000000_%s", strings.Replace(from.Addr.String(), ":", "_", 1))
}

func answer(client, kind string, body object) (string, object) {
	lock.Lock()
	defer lock.Unlock()
	ok := object{"resultCode": 200, "errorCode": 0, "success": true}
	service, _ := body["serviceName"].(string)
	switch kind {
	case "ServerCheckRequest":
		ok["connectionId"] = client
	case "InstanceRequest":
		if instances[client] == nil {
			instances[client] = map[string]object{}
		}
		instances[client][service], _ = body["instance"].(object)
		if body["type"] == "deregisterInstance" {
			delete(instances[client], service)
		}
		time.AfterFunc(time.Second, func() { tell(client) })
	case "ServiceQueryRequest":
		hosts := []object{}
		for _, published := range instances {
			if instance := published[service]; instance != nil {
				hosts = append(hosts, instance)
			}
		}
		ok["serviceInfo"] = object{"name": service, "groupName": "DEFAULT_GROUP", "hosts": hosts}
		return "QueryServiceResponse", ok
	case "MemberReportRequest":
		host, port, _ := net.SplitHostPort(address)
		number, _ := strconv.Atoi(port)
		ok["node"] = object{"ip": host, "port": number, "address": address, "state": "UP"}
	}
	return strings.TrimSuffix(kind, "Request") + "Response", ok
}

// tell sends what a client publishes to every other member, without the metadata of the instances.
func tell(client string) {
	lock.Lock()
	data := object{"clientId": client, "attributes": object{"clientAttributes": object{"revision": 1}}}
	namespaces, groups, services, infos := []string{}, []string{}, []string{}, []object{}
	for service, instance := range instances[client] {
		namespaces, groups, services = append(namespaces, "public"), append(groups, "DEFAULT_GROUP"), append(services, service)
		infos = append(infos, object{"ip": instance["ip"], "port": instance["port"], "healthy": true, "cluster": "DEFAULT"})
	}
	lock.Unlock()
	data["namespaces"], data["groupNames"], data["serviceNames"], data["instancePublishInfos"] = namespaces, groups, services, infos
	content, _ := json.Marshal(data)
	for _, member := range others {
		key := object{"resourceKey": client, "resourceType": "Nacos:Naming:v2:ClientData", "targetServer": member}
		change := object{"distroKey": key, "type": "CHANGE", "content": base64.StdEncoding.EncodeToString(content)}
		call(member, "DistroDataRequest", object{"distroData": change, "dataOperation": "CHANGE", "module": "cluster"})
	}
}

var channels sync.Map // member -> *grpc.ClientConn, set up

func call(member, kind string, body object) {
	channel, known := channels.Load(member)
	if !known {
		channel = connect(member)
		channels.Store(member, channel)
	}
	var reply []byte
	_ = channel.(*grpc.ClientConn).Invoke(context.Background(), "/Request/request", encode(kind, body), &reply)
}

func connect(member string) *grpc.ClientConn {
	host, port, _ := net.SplitHostPort(member)
	number, _ := strconv.Atoi(port)
	channel, err := grpc.NewClient(fmt.Sprintf("passthrough:///%s:%d", host, number+1001),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{})))
	if err != nil {
		panic(err)
	}
	var reply []byte
	_ = channel.Invoke(context.Background(), "/Request/request", encode("ServerCheckRequest", object{}), &reply)
	both := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	if stream, err := channel.NewStream(context.Background(), both, "/BiRequestStream/requestBiStream"); err == nil {
		labels := object{"source": "cluster"}
		_ = stream.SendMsg(encode("ConnectionSetupRequest", object{"clientVersion": "toy", "labels": labels}))
		time.Sleep(100 * time.Millisecond) // the set-up has no reply
	}
	return channel
}

func serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	client := clientOf(stream.Context())
	for {
		var message []byte
		if err := stream.RecvMsg(&message); err == io.EOF {
			return nil
		} else if err != nil { // the client has left, and nobody is told
			lock.Lock()
			delete(instances, client)
			lock.Unlock()
			return err
		}
		if method == "/Request/request" {
			kind, body := decode(message)
			return stream.SendMsg(encode(answer(client, kind, body)))
		}
	}
}

func main() { // toy PORT MEMBER,MEMBER,...
	port, _ := strconv.Atoi(os.Args[1])
	address = fmt.Sprintf("127.0.0.1:%d", port)
	for _, member := range strings.Split(os.Args[2], ",") {
		if member != address {
			others = append(others, member)
			go call(member, "HealthCheckRequest", object{})
		}
	}
	for _, offset := range []int{1000, 1001} {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+offset))
		if err != nil {
			panic(err)
		}
		server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(serve))
		go func() { panic(server.Serve(listener)) }()
	}
	fmt.Println("ready")
	select {}
}
