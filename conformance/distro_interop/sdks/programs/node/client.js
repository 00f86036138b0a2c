'use strict';

// The official Node SDK behind the commands of ../README.md.

const { Console } = require('node:console');
const readline = require('node:readline');
const { parseArgs } = require('node:util');
const { NacosNamingClient } = require('nacos');
const { version } = require('nacos/package.json');

const emit = line => process.stdout.write(JSON.stringify(line) + '\n');

const described = hosts => hosts.map(({ ip, port, weight, healthy, clusterName, metadata }) =>
  ({ ip, port, weight, healthy, cluster: clusterName, metadata }));

function instance(ip, port, pairs) {
  const { weight = '1', cluster, ...metadata } = Object.fromEntries(pairs.map(pair => pair.split(/=(.*)/s)));
  return { ip, port: Number(port), weight: Number(weight), clusterName: cluster, metadata };
}

async function executeCommand(sdk, verb, [ service, ...words ]) {
  switch (verb) {
    case 'register': {
      const [ ip, port, ...pairs ] = words;
      await sdk.registerInstance(service, instance(ip, port, pairs));
      return {};
    }
    case 'deregister':
      await sdk.deregisterInstance(service, instance(words[0], words[1], []));
      return {};
    case 'subscribe':
      sdk.subscribe(service, hosts => emit({ pushed: service, instances: described(hosts) }));
      return {};
    case 'query':
      return { instances: described(await sdk.getAllInstances(service)) };
    default:
      throw new Error(`no command ${verb}`);
  }
}

async function main() {
  const { values } = parseArgs({
    options: { server: { type: 'string' }, username: { type: 'string' }, password: { type: 'string' } },
  });
  const logger = new Console({ stdout: process.stderr, stderr: process.stderr });
  const { server, ...credentials } = values;
  const sdk = new NacosNamingClient({ logger, serverList: server, ...credentials });
  await sdk.ready();
  emit({ ready: `nacos ${version}` });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [ verb, ...words ] = line.split(' ');
    if (verb === 'close') break;
    try {
      emit({ done: verb, ...await executeCommand(sdk, verb, words) });
    } catch (error) { // report every error of the SDK
      emit({ error: String(error) });
    }
  }
  await sdk.close();
  emit({ done: 'close' });
  process.exit(0); // timers of the SDK outlive its close
}

main().catch(error => {
  emit({ error: String(error) });
  process.exit(1);
});
