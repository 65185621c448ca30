// A member or a producer with kafkajs: `kafkajs.js member ...` or `kafkajs.js feeder ...`. harness/history.py describes
// the lines that it prints. NODE_PATH says where the library is.
"use strict";

const readline = require("node:readline");
const { Kafka, PartitionAssigners, CompressionTypes, logLevel } = require("kafkajs");

const flags = {};
for (let i = 3; i + 1 < process.argv.length; i += 2) flags[process.argv[i].replace(/^--/, "")] = process.argv[i + 1];

const kafka = new Kafka({
  clientId: flags.name,
  brokers: [flags.bootstrap],
  logLevel: logLevel.ERROR,
  retry: { retries: 100, initialRetryTime: 100, maxRetryTime: 1000 },
});

function say(event, rest = "") {
  const us = Math.round((performance.timeOrigin + performance.now()) * 1000);
  process.stdout.write(`${event} ${us} ${rest}`.trimEnd() + "\n");
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const numbers = (partitions) => [...partitions].sort((a, b) => a - b).join(",") || "-";

// What a rebalance does to a commit; anything else is a broker out of reach.
const REFUSED = new Set(["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"]);

async function member() {
  const consumer = kafka.consumer({
    groupId: flags.group,
    sessionTimeout: 6000,
    heartbeatInterval: 500,
    rebalanceTimeout: 30000,
    metadataMaxAge: 2000,
    maxWaitTimeInMs: 100,
    maxBytesPerPartition: 32768,
    partitionAssigners: [PartitionAssigners.roundRobin],
  });
  let owned = new Set();
  const uncommitted = new Map();

  const giveUp = () => {
    if (owned.size > 0) say("revoked", numbers(owned));
    owned = new Set();
    uncommitted.clear();
  };
  const commit = async () => {
    if (uncommitted.size === 0) return;
    const entries = [...uncommitted];
    const text = entries.map(([partition, offset]) => `${partition}:${offset}`).join(" ");
    try {
      await consumer.commitOffsets(entries.map(([partition, offset]) => ({ topic: flags.topic, partition, offset: String(offset) })));
      say("committed", text);
      for (const [partition, offset] of entries) {
        if (uncommitted.get(partition) === offset) uncommitted.delete(partition);
      }
    } catch (error) {
      if (REFUSED.has(error.type)) say("refused", `${text} ${error.type}`);
      throw error;
    }
  };

  consumer.on(consumer.events.REBALANCING, giveUp);
  consumer.on(consumer.events.CRASH, ({ payload }) => console.error("crash:", payload.error.message, "restart:", payload.restart));
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    giveUp();
    owned = new Set(payload.memberAssignment[flags.topic] ?? []);
    say("assigned", `-1 ${numbers(owned)}`);
  });

  await consumer.connect();
  await consumer.subscribe({ topics: [flags.topic], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat, isRunning, isStale }) => {
      if (!isRunning() || isStale()) return;
      let run = [];
      let first = 0;
      const flush = () => {
        if (run.length > 0) say("read", `${batch.partition} ${first} ${run.join(" ")}`);
        run = [];
      };
      for (const message of batch.messages) {
        const offset = Number(message.offset);
        if (run.length > 0 && offset !== first + run.length) flush();
        if (run.length === 0) first = offset;
        run.push(message.value.toString().split(" ", 1)[0]);
      }
      flush();
      const last = batch.messages[batch.messages.length - 1].offset;
      uncommitted.set(batch.partition, Number(last) + 1);
      resolveOffset(last);
      await commit();
      await heartbeat();
      await sleep(Number(flags["pause-ms"] ?? 0));
    },
  });

  let leaving = false;
  const commands = readline.createInterface({ input: process.stdin });
  commands.on("line", async (line) => {
    if (line !== "leave") return;
    leaving = true;
    await consumer.stop();
    await consumer.disconnect();
    say("left");
    process.exit(0);
  });
  // The end of input ends the process, because whoever started it is gone.
  commands.on("close", () => {
    if (!leaving) process.exit(3);
  });
}

async function feeder() {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const first = Number(flags.first);
  const end = first + Number(flags.count);
  const rate = Number(flags.rate ?? 0);
  const padding = " " + "x".repeat(90);
  const start = performance.now();
  // One request is under way at a time, and it carries what fell due meanwhile: 500 records, or those of 50 ms.
  const size = rate > 0 ? Math.max(1, Math.floor(rate / 20)) : 500;
  for (let from = first; from < end; from += size) {
    const to = Math.min(end, from + size);
    const messages = [];
    // The answer names the offset of the first record of each partition; the others of the request follow it.
    for (let id = from; id < to; id++) messages.push({ partition: id % 12, key: `key-${id}`, value: `${id}${padding}` });
    const answers = await producer.send({ topic: flags.topic, acks: -1, compression: CompressionTypes.GZIP, timeout: 30000, messages });
    const next = new Map(answers.map((answer) => [answer.partition, Number(answer.baseOffset)]));
    let lines = "";
    for (let id = from; id < to; id++) {
      const partition = id % 12;
      lines += `acked ${partition} ${next.get(partition)} ${id}\n`;
      next.set(partition, next.get(partition) + 1);
    }
    process.stdout.write(lines);
    if (rate > 0) {
      const early = start + ((to - first) * 1000) / rate - performance.now();
      if (early > 0) await sleep(early);
    }
  }
  await producer.disconnect();
  process.stdout.write("done 0\n", () => process.exit(0));
}

const roles = { member, feeder };
roles[process.argv[2]]().catch((error) => {
  console.error(error);
  process.exit(1);
});
