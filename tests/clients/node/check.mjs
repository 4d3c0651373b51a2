// SPDX-License-Identifier: Apache-2.0
// What the checks stand on: each has a name that says what it checks, and fails by an exception. Output is a line for each
// ("ok - NAME", "not ok - NAME") that clients.sh turns into TAP.
import { createInterface } from 'node:readline';
import { isDeepStrictEqual } from 'node:util';

const only = new RegExp(process.env.CLIENTS_ONLY || '');
const timeout = 120_000;  // of a check; the machine may be a busy one
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

export async function check(name, body) {
  const title = 'node: ' + name;
  if (!only.test(title)) return;
  let timer;
  try {
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('no end in time')), timeout); });
    await Promise.race([body(), late]);
    console.log('ok - ' + title);
  } catch (error) {
    console.log('not ok - ' + title);
    for (const line of String(error?.stack || error).split('\n').slice(0, 8)) console.log('| ' + line.slice(0, 600));
  } finally {
    clearTimeout(timer);
  }
}

// Has the daemon stopped ("stop") or started ("start"); resolves when that is done.
export async function ask(word) {
  console.log('!' + word);
  const { value } = await answers.next();
  if (value !== 'done') throw new Error(`asked for ${word}, answered ${value}`);
}

export function same(what, got, want) {
  if (!isDeepStrictEqual(got, want)) throw new Error(`${what}: want ${JSON.stringify(want)}, got ${JSON.stringify(got)}`);
}

export function matches(what, text, expression) {
  if (!expression.test(String(text))) throw new Error(`${what}: want a match of ${expression}, got ${JSON.stringify(text)}`);
}

// Polls until it is so: `so` gives true, or what it saw.
export async function until(what, so) {
  for (const end = Date.now() + timeout - 5000; ;) {
    const seen = await so();
    if (seen === true) return;
    if (Date.now() > end) throw new Error(`not so in time: ${what}; last seen: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// The promise must be rejected as Kubernetes refuses; gives the Status.
export async function refused(code, reason, message, promise) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  if (!error) throw new Error(`was accepted; want ${code} ${reason}`);
  const status = typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
  same('status', [error.code, status?.reason, status?.code], [code, reason, code]);
  if (message) same('message', status.message, message);
  return status;
}
