// SPDX-License-Identifier: Apache-2.0
// A program on @kubernetes/client-node, unmodified, against the server that a kubeconfig names. CLIENT_NODE is the directory of the
// node_modules that hold it. Arguments: KUBECONFIG DIRECTORY IMAGE; the directory holds objects.yaml, the image has a shell.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { createRequire } from 'node:module';
import { PassThrough, Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';

import { ask, check, matches, refused, same, until } from './check.mjs';

const resolve = createRequire(pathToFileURL(process.env.CLIENT_NODE + '/')).resolve;
const k8s = await import(pathToFileURL(resolve('@kubernetes/client-node')));
const [kubeconfig, directory, image] = process.argv.slice(2);

const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const as = (strategy) => k8s.setHeaderOptions('Content-Type', strategy);

async function namespaced(name) {
  await core.createNamespace({ body: { metadata: { name } } });
  await until("the namespace has its service account and the authority's certificate", async () =>
    (await core.listNamespacedServiceAccount({ namespace: name })).items.length > 0 && (await core.listNamespacedConfigMap({ namespace: name })).items.length > 0);
  return name;
}
const map = (namespace, name, data, metadata) => core.createNamespacedConfigMap({ namespace, body: { metadata: { name, ...metadata }, data } });
const deployment = (name, replicas) => ({
  apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, labels: { app: name } },
  spec: { replicas, selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } },
    spec: { containers: [{ name: 'main', image: 'example.invalid/a:1', env: [{ name: 'A', value: '1' }] }] } } },
});

async function typedClients() {
  const namespace = await namespaced('node-typed');
  await check('the version and the groups', async () => {
    const version = await config.makeApiClient(k8s.VersionApi).getCode();
    same('version', [version.major, version.minor], ['1', '36']);
    const groups = (await config.makeApiClient(k8s.ApisApi).getAPIVersions()).groups;
    same('preferred', groups.find((group) => group.name === 'apps').preferredVersion.groupVersion, 'apps/v1');
  });
  await check('create, read, replace, patch three ways, delete', async () => {
    const made = await map(namespace, 'sample', { a: '1', text: 'grüße\n' }, { labels: { part: 'one' } });
    same('created at a time', made.metadata.creationTimestamp instanceof Date, true);
    made.data.a = '2';
    same('replaced', (await core.replaceNamespacedConfigMap({ namespace, name: 'sample', body: made })).data.a, '2');
    const merged = await core.patchNamespacedConfigMap({ namespace, name: 'sample', body: { data: { a: null, b: '3' } } }, as(k8s.PatchStrategy.MergePatch));
    same('merged', merged.data, { b: '3', text: 'grüße\n' });
    const patched = await core.patchNamespacedConfigMap({ namespace, name: 'sample', body: [{ op: 'replace', path: '/data/b', value: '4' }] }, as(k8s.PatchStrategy.JsonPatch));
    same('patched', patched.data.b, '4');
    await apps.createNamespacedDeployment({ namespace, body: deployment('web', 0) });
    const strategic = await apps.patchNamespacedDeployment({ namespace, name: 'web',
      body: { spec: { template: { spec: { containers: [{ name: 'main', env: [{ name: 'B', value: '2' }] }] } } } } }, as(k8s.PatchStrategy.StrategicMergePatch));
    same('strategic', strategic.spec.template.spec.containers[0].env.map((one) => one.name).sort(), ['A', 'B']);
    same('deleted', (await core.deleteNamespacedConfigMap({ namespace, name: 'sample' })).status, 'Success');
    await refused(404, 'NotFound', 'configmaps "sample" not found', core.readNamespacedConfigMap({ namespace, name: 'sample' }));
  });
  await check('errors: exists, conflict, invalid with causes, strict', async () => {
    const made = await map(namespace, 'twice', { a: '1' });
    await refused(409, 'AlreadyExists', 'configmaps "twice" already exists', map(namespace, 'twice'));
    await core.patchNamespacedConfigMap({ namespace, name: 'twice', body: { data: { a: '2' } } }, as(k8s.PatchStrategy.MergePatch));
    await refused(409, 'Conflict', 'Operation cannot be fulfilled on configmaps "twice": the object has been modified; please apply your changes to the latest version and try again',
      core.replaceNamespacedConfigMap({ namespace, name: 'twice', body: made }));
    const status = await refused(422, 'Invalid', undefined, apps.createNamespacedDeployment({ namespace, body: deployment('Wrong', -1) }));
    same('causes', status.details.causes.map((cause) => cause.field + ' ' + cause.reason).sort(), ['metadata.name FieldValueInvalid', 'spec.replicas FieldValueInvalid']);
    await refused(400, 'BadRequest', 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dada"',
      raw('POST', `/api/v1/namespaces/${namespace}/configmaps?fieldValidation=Strict`, { 'Content-Type': 'application/json' }, JSON.stringify({ metadata: { name: 'x' }, dada: {} })).then(failIfRefused));
  });
  await check('pages, selectors, dry run, generateName, deletecollection', async () => {
    for (let n = 0; n < 7; n++) await map(namespace, 'page-' + n, undefined, { labels: { paged: n % 2 ? 'odd' : 'even' } });
    const names = [], moments = new Set();
    for (let token; ;) {
      const page = await core.listNamespacedConfigMap({ namespace, labelSelector: 'paged', limit: 3, _continue: token });
      names.push(...page.items.map((item) => item.metadata.name));
      moments.add(page.metadata.resourceVersion);
      if (!(token = page.metadata._continue)) break;
    }
    same('names', names, [0, 1, 2, 3, 4, 5, 6].map((n) => 'page-' + n));
    same('moments', moments.size, 1);
    const dry = await core.createNamespacedConfigMap({ namespace, dryRun: 'All', body: { metadata: { generateName: 'dry-' } } });
    matches('name', dry.metadata.name, /^dry-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    same('by name', (await core.listNamespacedConfigMap({ namespace, fieldSelector: 'metadata.name=' + dry.metadata.name })).items.length, 0);
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'paged=odd' });
    same('left', (await core.listNamespacedConfigMap({ namespace, labelSelector: 'paged' })).items.length, 4);
  });
  await check('scale and status', async () => {
    const scale = await apps.readNamespacedDeploymentScale({ namespace, name: 'web' });
    scale.spec.replicas = 1;
    same('replicas', (await apps.replaceNamespacedDeploymentScale({ namespace, name: 'web', body: { ...scale, metadata: { name: 'web', namespace } } })).spec.replicas, 1);
    const status = await apps.patchNamespacedDeploymentStatus({ namespace, name: 'web',
      body: { spec: { paused: true }, status: { conditions: [{ type: 'Checked', status: 'True' }] } } }, as(k8s.PatchStrategy.StrategicMergePatch));
    same('paused', status.spec.paused, undefined);
    same('condition', status.status.conditions.some((one) => one.type === 'Checked'), true);
    await apps.deleteNamespacedDeployment({ namespace, name: 'web', propagationPolicy: 'Foreground' });
  });
  await check('a token, and what its holder is and may', async () => {
    await core.createNamespacedServiceAccount({ namespace, body: { metadata: { name: 'robot' } } });
    const token = (await core.createNamespacedServiceAccountToken({ namespace, name: 'robot', body: { spec: { audiences: [], expirationSeconds: 900 } } })).status.token;
    const own = new k8s.KubeConfig();
    own.loadFromOptions({ clusters: config.clusters, users: [{ name: 'robot', token }], contexts: [{ name: 'robot', user: 'robot', cluster: config.getCurrentCluster().name }], currentContext: 'robot' });
    const review = await own.makeApiClient(k8s.AuthenticationV1Api).createSelfSubjectReview({ body: {} });
    same('user', review.status.userInfo.username, `system:serviceaccount:${namespace}:robot`);
    await refused(403, 'Forbidden', `pods is forbidden: User "system:serviceaccount:${namespace}:robot" cannot list resource "pods" in API group "" in the namespace "${namespace}"`,
      own.makeApiClient(k8s.CoreV1Api).listNamespacedPod({ namespace }));
    const access = await config.makeApiClient(k8s.AuthorizationV1Api).createSelfSubjectAccessReview({ body: { spec: { resourceAttributes: { verb: 'delete', resource: 'nodes' } } } });
    same('allowed', access.status.allowed, true);
  });
  await check('a Lease with microseconds', async () => {
    const leases = config.makeApiClient(k8s.CoordinationV1Api);
    const made = await leases.createNamespacedLease({ namespace, body: { metadata: { name: 'lock' }, spec: { holderIdentity: 'a', leaseDurationSeconds: 15, renewTime: new k8s.V1MicroTime('2026-01-02T03:04:05.678Z') } } });
    same('time', new Date(made.spec.renewTime).toISOString(), '2026-01-02T03:04:05.678Z');
    made.spec.holderIdentity = 'b';
    same('holder', (await leases.replaceNamespacedLease({ namespace, name: 'lock', body: made })).spec.holderIdentity, 'b');
  });
}

// A request as it is: for headers that the library's methods do not set.
async function raw(method, path, headers, body) {
  const url = new URL(config.getCurrentCluster().server + path);
  const how = { method, headers };
  await config.applyToHTTPSOptions(how);
  return await new Promise((answered, failed) => {
    const sent = request(url, how, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => { text += part; }).on('end', () => answered({ code: response.statusCode, headers: response.headers, body: text }));
    });
    sent.on('error', failed).end(body);
  });
}
function failIfRefused(answer) {
  if (answer.code >= 400) throw answer;
  return answer;
}

async function genericClient() {
  const namespace = await namespaced('node-generic');
  const text = readFileSync(directory + '/objects.yaml', 'utf8').replaceAll('$NAMESPACE', namespace);
  for (const object of k8s.loadAllYaml(text)) {
    await check(`${object.apiVersion} ${object.kind}: applied twice, read, patched, listed, deleted`, async () => {
      const resource = await objects.resource(object.apiVersion, object.kind);
      if (!resource) throw new Error('is not served');
      if (resource.namespaced) object.metadata.namespace = namespace;
      const header = { apiVersion: object.apiVersion, kind: object.kind, metadata: { name: object.metadata.name, namespace: object.metadata.namespace } };
      const apply = () => objects.patch(object, undefined, undefined, 'node', true, k8s.PatchStrategy.ServerSideApply);
      const first = await apply();
      same('manager', first.metadata.managedFields.filter((entry) => entry.manager === 'node').map((entry) => entry.operation), ['Apply']);
      let before, again;
      for (let n = 0; n < 5; n++) {  // a controller may have written in between
        before = await objects.read(header);
        again = await apply();
        if (again.metadata.resourceVersion === before.metadata.resourceVersion) break;
      }
      same('resourceVersion when applied again', again.metadata.resourceVersion, before.metadata.resourceVersion);
      const patched = await objects.patch({ ...header, metadata: { ...header.metadata, annotations: { 'clients.example/a': 'b' } } }, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
      same('annotation', patched.metadata.annotations['clients.example/a'], 'b');
      const list = await objects.list(object.apiVersion, object.kind, header.metadata.namespace, undefined, undefined, undefined, 'metadata.name=' + header.metadata.name);
      same('listed', list.items.map((item) => item.metadata.name), [header.metadata.name]);
      await objects.delete(header, undefined, undefined, 0, undefined, 'Background');
      try {
        const left = await objects.read(header);
        same('is being deleted', Boolean(left.metadata.deletionTimestamp) && (left.metadata.finalizers || left.spec.finalizers).length > 0, true);
      } catch (error) {
        same('status', error.code, 404);
      }
    });
  }
  await check('a conflict of managers, and force', async () => {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'shared', namespace }, data: { a: '1' } };
    await objects.patch(object, undefined, undefined, 'one', false, k8s.PatchStrategy.ServerSideApply);
    object.data.a = '2';
    await refused(409, 'Conflict', 'Apply failed with 1 conflict: conflict with "one": .data.a', objects.patch(object, undefined, undefined, 'two', false, k8s.PatchStrategy.ServerSideApply));
    const forced = await objects.patch(object, undefined, undefined, 'two', true, k8s.PatchStrategy.ServerSideApply);
    same('managers', forced.metadata.managedFields.map((entry) => entry.manager), ['two']);
  });
  await check('a table, asked for by the Accept header', async () => {
    const answer = await raw('GET', `/api/v1/namespaces/${namespace}/configmaps/shared`, { Accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
    const table = JSON.parse(answer.body);
    same('table', [table.kind, table.columnDefinitions.map((column) => column.name), table.rows[0].cells.slice(0, 2)], ['Table', ['Name', 'Data', 'Age'], ['shared', 1]]);
  });
}

async function watches() {
  const namespace = await namespaced('node-watches');
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const follow = (query, want) => new Promise((answered, failed) => {  // the first events, as "TYPE NAME"
    const seen = [];
    let controller;
    new k8s.Watch(config).watch(path, query, (phase, object) => {
      seen.push(phase + ' ' + (object.metadata.name || object.code || ''));
      if (seen.length === want) { answered(seen); controller?.abort(); }
    }, (error) => (error && seen.length < want ? failed(error) : answered(seen))).then((one) => { controller = one; }, failed);
  });
  await check('a watch: added, modified, deleted; with a selector; with an end; streamed', async () => {
    const now = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
    const seen = follow({ resourceVersion: now }, 3);
    await map(namespace, 'seen', undefined, { labels: { colour: 'red' } });
    await core.patchNamespacedConfigMap({ namespace, name: 'seen', body: { data: { a: 'b' } } }, as(k8s.PatchStrategy.MergePatch));
    await core.deleteNamespacedConfigMap({ namespace, name: 'seen' });
    same('events', await seen, ['ADDED seen', 'MODIFIED seen', 'DELETED seen']);
    await map(namespace, 'red', undefined, { labels: { colour: 'red' } });
    same('selected', await follow({ labelSelector: 'colour=red', timeoutSeconds: 1 }, 9), ['ADDED red']);
    same('streamed', await follow({ sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true }, 3), ['ADDED kube-root-ca.crt', 'ADDED red', 'BOOKMARK ']);
  });
  await check('a watch from a past that is gone: an ERROR of 410', async () => {
    const old = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
    await map(namespace, 'ballast');
    for (let n = 0; ; n++) {
      if (n === 400) throw new Error('nothing has expired');
      await core.patchNamespacedConfigMap({ namespace, name: 'ballast', body: { data: { n: String(n), text: 'x'.repeat(700_000) } } }, as(k8s.PatchStrategy.MergePatch));
      try {
        await core.listNamespacedConfigMap({ namespace, limit: 1, resourceVersion: old, resourceVersionMatch: 'Exact' });
      } catch (error) {
        same('status', error.code, 410);
        break;
      }
    }
    const seen = await follow({ resourceVersion: old }, 1).catch((error) => ['ERROR ' + error.statusCode]);
    same('event', seen, ['ERROR 410']);
    await core.deleteNamespacedConfigMap({ namespace, name: 'ballast' });
  });
  await check('an informer: what there is, what happens, and after the server went away and came back', async () => {
    await map(namespace, 'stays', { a: '1' });
    await map(namespace, 'goes');
    const informer = k8s.makeInformer(config, path, () => core.listNamespacedConfigMap({ namespace }));
    const told = [];
    for (const verb of ['add', 'update', 'delete']) informer.on(verb, (object) => told.push(verb + ' ' + object.metadata.name));
    let running = true;
    informer.on('error', () => { if (running) setTimeout(() => informer.start(), 100); });
    await informer.start();
    await core.patchNamespacedConfigMap({ namespace, name: 'stays', body: { data: { a: '2' } } }, as(k8s.PatchStrategy.MergePatch));
    await until('the informer is told', () => told.includes('update stays') || told);
    await ask('stop');
    same('kept', informer.get('stays', namespace)?.data.a, '2');
    await ask('start');
    await map(namespace, 'new');
    await core.deleteNamespacedConfigMap({ namespace, name: 'goes' });
    await until('the informer goes on', () => (told.includes('add new') && told.includes('delete goes')) || told);
    running = false;
    await informer.stop();
    same('additions of what stayed', told.filter((line) => line === 'add stays').length, 1);
    same('cache', informer.list(namespace).map((object) => object.metadata.name).sort(), ['kube-root-ca.crt', 'new', 'red', 'stays']);
  });
}

async function pods() {
  const namespace = await namespaced('node-pods');
  await check('a pod runs', async () => {
    await core.createNamespacedPod({ namespace, body: { metadata: { name: 'worker' }, spec: { terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image, imagePullPolicy: 'IfNotPresent', command: ['sh', '-c', 'echo one; echo two; exec sleep 100000'] }] } } });
    await until('it is ready', async () => {
      const status = (await core.readNamespacedPodStatus({ namespace, name: 'worker' })).status;
      return status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') || status;
    });
  });
  const collect = () => {
    const stream = new Writable({ write(part, _, done) { stream.text += part; done(); } });
    stream.text = '';
    return stream;
  };
  await check('its log: whole, the last line, followed', async () => {
    await until('two lines', async () => { const text = await core.readNamespacedPodLog({ namespace, name: 'worker' }); return text === 'one\ntwo\n' || text; });
    same('last', await core.readNamespacedPodLog({ namespace, name: 'worker', tailLines: 1 }), 'two\n');
    const out = new PassThrough();
    let text = '';
    out.on('data', (part) => { text += part; });
    const controller = await new k8s.Log(config).log(namespace, 'worker', 'main', out, { follow: true });
    await until('followed', () => text === 'one\ntwo\n' || text);
    controller.abort();
  });
  const exec = (command, stdin, tty) => new Promise((answered, failed) => {
    const out = collect(), errors = collect();
    new k8s.Exec(config).exec(namespace, 'worker', 'main', command, out, tty ? null : errors, stdin, tty, (status) => answered({ out: out.text, errors: errors.text, status })).catch(failed);
  });
  await check('exec: both outputs, an exit code, standard input, a terminal', async () => {
    const plain = await exec(['sh', '-c', 'echo out; echo err >&2; exit 7'], null, false);
    same('outputs', [plain.out, plain.errors], ['out\n', 'err\n']);
    same('status', [plain.status.status, plain.status.reason, plain.status.details.causes], ['Failure', 'NonZeroExitCode', [{ reason: 'ExitCode', message: '7' }]]);
    const fed = await exec(['head', '-n', '2'], Readable.from(['a\n', 'b\n', 'c\n']), false);
    same('fed', [fed.out, fed.status.status], ['a\nb\n', 'Success']);
    matches('terminal', (await exec(['tty'], null, true)).out, /^\/dev\/(pts\/\d+|console)\r\n$/);
  });
}

await typedClients();
await genericClient();
await pods();
await watches();
process.exit(0);
