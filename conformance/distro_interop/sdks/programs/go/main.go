// The official Go SDK behind the commands of ../README.md.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/model"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"
)

const sdkPath = "github.com/nacos-group/nacos-sdk-go/v2"

type line map[string]any

var stdout sync.Mutex

func emit(answer line) {
	stdout.Lock()
	defer stdout.Unlock()
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func main() {
	server := flag.String("server", "", "HOST:PORT[,HOST:PORT…]")
	username := flag.String("username", "", "")
	password := flag.String("password", "", "")
	flag.Parse()

	sdk, err := clients.NewNamingClient(vo.NacosClientParam{
		ClientConfig: constant.NewClientConfig(
			constant.WithUsername(*username),
			constant.WithPassword(*password),
			constant.WithNotLoadCacheAtStart(true),
			constant.WithUpdateCacheWhenEmpty(true),
			constant.WithLogDir(os.Getenv("HOME")+"/nacos/logs"),
			constant.WithCacheDir(os.Getenv("HOME")+"/nacos/cache"),
		),
		ServerConfigs: serverConfigs(*server),
	})
	if err != nil {
		emit(line{"error": err.Error()})
		os.Exit(1)
	}
	emit(line{"ready": "nacos-sdk-go " + sdkVersion()})
	obeyAll(sdk)
	sdk.CloseClient()
	emit(line{"done": "close"})
}

func serverConfigs(list string) []constant.ServerConfig {
	var configs []constant.ServerConfig
	for _, address := range strings.Split(list, ",") {
		host, port, _ := strings.Cut(address, ":")
		configs = append(configs, *constant.NewServerConfig(host, number(port)))
	}
	return configs
}

func obeyAll(sdk naming_client.INamingClient) {
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() && commands.Text() != "close" {
		words := strings.Fields(commands.Text())
		answer := line{"done": words[0]}
		if err := executeCommand(sdk, words[0], words[1:], answer); err != nil {
			answer = line{"error": err.Error()}
		}
		emit(answer)
	}
}

func executeCommand(sdk naming_client.INamingClient, verb string, words []string, answer line) error {
	service := words[0]
	switch verb {
	case "register":
		return accepted(sdk.RegisterInstance(instance(service, words[1], words[2], words[3:])))
	case "batch":
		var instances []vo.RegisterInstanceParam
		for _, address := range strings.Split(words[1], ",") {
			ip, port, _ := strings.Cut(address, ":")
			instances = append(instances, instance(service, ip, port, nil))
		}
		return accepted(sdk.BatchRegisterInstance(vo.BatchRegisterInstanceParam{
			ServiceName: service, Instances: instances,
		}))
	case "deregister":
		return accepted(sdk.DeregisterInstance(vo.DeregisterInstanceParam{
			ServiceName: service, Ip: words[1], Port: number(words[2]), Ephemeral: true,
		}))
	case "subscribe":
		return sdk.Subscribe(&vo.SubscribeParam{ServiceName: service, SubscribeCallback: func(found []model.Instance, err error) {
			if err != nil && len(found) == 0 { // the SDK reports an empty list as an error
				found = nil
			}
			emit(line{"pushed": service, "instances": described(found)})
		}})
	case "query":
		found, err := sdk.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: service})
		answer["instances"] = described(found)
		if err != nil && len(found) == 0 && err.Error() == "instance list is empty!" {
			return nil
		}
		return err
	}
	return fmt.Errorf("no command %q", verb)
}

// accepted returns a refusal, which the SDK returns as false, as an error.
func accepted(ok bool, err error) error {
	if err == nil && !ok {
		return errors.New("the server refused")
	}
	return err
}

func instance(service, ip, port string, pairs []string) vo.RegisterInstanceParam {
	param := vo.RegisterInstanceParam{
		ServiceName: service, Ip: ip, Port: number(port), Weight: 1, Enable: true, Healthy: true, Ephemeral: true,
		Metadata: map[string]string{},
	}
	for _, pair := range pairs {
		switch key, value, _ := strings.Cut(pair, "="); key {
		case "weight":
			param.Weight, _ = strconv.ParseFloat(value, 64)
		case "cluster":
			param.ClusterName = value
		default:
			param.Metadata[key] = value
		}
	}
	return param
}

func described(instances []model.Instance) []line {
	rows := []line{}
	for _, each := range instances {
		rows = append(rows, line{
			"ip": each.Ip, "port": each.Port, "weight": each.Weight, "healthy": each.Healthy,
			"cluster": each.ClusterName, "metadata": each.Metadata,
		})
	}
	return rows
}

func number(text string) uint64 {
	value, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		panic(err)
	}
	return value
}

func sdkVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == sdkPath {
				return module.Version
			}
		}
	}
	return "of unknown version"
}
