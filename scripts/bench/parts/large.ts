// Prompts and answers of 30 MB beside short calls, in every protocol: the longest time that the main thread is busy without a pause, and the latency
// of the short calls.
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { chatCalls, models } from "../calls.ts"
import { contender, drive, print, say, table } from "../frame.ts"
import type { Bench, Contender, Part, Run } from "../frame.ts"
import { startGateway } from "../gateway.ts"
import { largeBytes, promptOf, vendorProtocols } from "../large.ts"
import type { ClientProtocol, Content, VendorProtocol } from "../large.ts"
import { ask, root, sleep, startPart, stop } from "../processes.ts"
import { startOutside } from "../world.ts"

/** The rate of the short calls, per second. A slower machine needs a lower one. `BENCH_LARGE_CASES` selects cases by a part of their names. */
const rate = Number(process.env["BENCH_LARGE_RATE"] ?? 1_000)
/** How many large calls follow each other. */
const times = 2

interface Case {
  readonly name: string
  readonly path: string
  readonly body: () => string
}

const pathOf = { chat: "/v1/chat/completions", messages: "/v1/messages", responses: "/v1/responses" } as const

/** A large prompt of a client's protocol for a vendor's protocol, with a short answer. */
const prompt = (client: ClientProtocol, vendor: VendorProtocol, content: Content): Case => ({
  name: `prompt, ${content}: ${client}${client === vendor ? "" : ` to ${vendor}`}`,
  path: pathOf[client],
  body: () => promptOf(client, content, `small-${vendor}`)
})

/** A short prompt with a large answer. */
const answer = (client: ClientProtocol, vendor: VendorProtocol, content: "text" | "many"): Case => ({
  name: `answer, ${content}: ${client}${client === vendor ? "" : ` from ${vendor}`}`,
  path: pathOf[client],
  body: () => {
    const model = `${content}-${vendor}`
    const input = [{ role: "user", content: "Hello" }]
    return JSON.stringify(
      client === "responses"
        ? { model, input, max_output_tokens: 64, store: false }
        : { model, messages: input, max_tokens: 64 }
    )
  }
})

const pairs: ReadonlyArray<readonly [ClientProtocol, VendorProtocol]> = [
  ["chat", "chat"],
  ["messages", "messages"],
  ["responses", "responses"],
  ["chat", "messages"],
  ["messages", "chat"],
  ["responses", "chat"],
  ["chat", "google"],
  ["chat", "bedrock"]
]

const embeddings: ReadonlyArray<Case> = [
  {
    name: "prompt, many: embeddings",
    path: "/v1/embeddings",
    body: () =>
      JSON.stringify({ model: "small-embeddings", input: Array.from({ length: 2_000 }, () => "account ".repeat(100)) })
  },
  {
    name: "answer, many: embeddings",
    path: "/v1/embeddings",
    body: () => JSON.stringify({ model: "text-embeddings", input: Array.from({ length: 1_500 }, () => "account") })
  }
]

const cases: ReadonlyArray<Case> = [
  ...pairs.flatMap(([client, vendor]) =>
    (["file", "text", "many"] as const).map((content) => prompt(client, vendor, content))
  ),
  ...pairs.flatMap(([client, vendor]) => (["text", "many"] as const).map((content) => answer(client, vendor, content))),
  ...embeddings
]

/** Adds the vendor's upstreams and models to the configuration. */
const withVendor = (port: number) => (configuration: Readonly<Record<string, unknown>>) => {
  const sizes = ["small", "text", "many"]
  const names = sizes.flatMap((size) => vendorProtocols.map((protocol) => ({ name: `${size}-${protocol}`, protocol })))
  const upstreams = [
    ...names,
    ...["small", "text"].map((size) => ({ name: `${size}-embeddings`, protocol: undefined }))
  ]
  const price = { prompt_usd_per_million: "0.001", completion_usd_per_million: "0.001" }
  return {
    ...configuration,
    upstreams: {
      ...(configuration.upstreams as object),
      ...Object.fromEntries(
        upstreams.map(({ name, protocol }) => [
          name,
          {
            base_url: `http://127.0.0.1:${port}/${name.replace("-", "/")}`,
            api_key_env: "BENCH_UPSTREAM_KEY",
            ...(protocol !== undefined && { speaks: [protocol] })
          }
        ])
      )
    },
    models: [
      ...(configuration.models as ReadonlyArray<object>),
      ...names.map(({ name }) => ({
        id: name,
        name,
        context_length: 1_000_000,
        max_output_tokens: 4096,
        price,
        upstreams: [{ upstream: name, model: "m" }]
      }))
    ],
    embeddings: ["small", "text"].map((size) => ({
      id: `${size}-embeddings`,
      name: `${size}-embeddings`,
      max_input_tokens: 10_000,
      price: { input_usd_per_million: "0.001" },
      upstreams: [{ upstream: `${size}-embeddings`, model: "m" }]
    }))
  }
}

interface Loop {
  readonly longest: number
  readonly limits: ReadonlyArray<number>
  readonly over: ReadonlyArray<number>
}

/** Reads the event loop's figures since the last reading. */
const loopOf = async (pid: number, file: string): Promise<Loop> => {
  rmSync(file, { force: true })
  process.kill(pid, "SIGUSR2")
  while (!existsSync(file)) await sleep(10)
  await sleep(10)
  return JSON.parse(readFileSync(file, "utf8")) as Loop
}

interface Measured {
  readonly run: Run
  readonly loop: Loop
  readonly seconds: number
  readonly wrong: string | undefined
}

/** Makes the large calls of a case one after the other, beside the short calls. */
const measure = async (
  bench: Bench,
  load: Parameters<typeof drive>[0],
  at: Contender,
  file: string,
  one?: Case
): Promise<Measured> => {
  const workload = chatCalls({ name: "short calls", connections: bench.options.connections })
  const body = one && Buffer.from(one.body())
  await loopOf(at.pid, file)
  let wrong: string | undefined
  let seconds = 0
  const large = async () => {
    if (one === undefined) return
    await sleep(300)
    for (let i = 0; i < times && wrong === undefined; i++) {
      const began = performance.now()
      const response = await fetch(`http://127.0.0.1:${at.port}${one.path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${at.keys[0]}` },
        body: body!
      })
      const text = await response.text()
      if (response.status !== 200) wrong = `${response.status} ${text.slice(0, 200)}`
      seconds += (performance.now() - began) / 1000 / times
    }
  }
  const [run] = await Promise.all([drive(load, at, workload, { seconds: bench.options.seconds, rate }), large()])
  return { run, loop: await loopOf(at.pid, file), seconds, wrong }
}

const run = async (bench: Bench): Promise<void> => {
  const { cores, directory, options } = bench
  const { load, outside, upstream } = await startOutside(cores)
  const vendor = startPart(cores.driving, "large.ts")
  const { port } = await ask<{ readonly port: number }>(vendor)
  const file = join(directory, "loop")
  const service = await startGateway({
    name: "gateway",
    main: options.main,
    cores: { ...cores, served: undefined },
    outside,
    directory: join(directory, "large"),
    flags: ["--require", join(root, "scripts", "bench", "loop.cjs")],
    env: { BENCH_LOOP: file },
    configure: withVendor(port)
  })
  await service.addCallers(1)
  const at = contender(service)
  say(`large: warming up ${models[0]}`)
  await measure(bench, load, at, file)
  const rows: Array<ReadonlyArray<string>> = [
    ["beside", "p50 ms", "p99 ms", "longest ms", "> 10, 25, 50, 100 ms", "each s"]
  ]
  const row = (name: string, { loop, run, seconds, wrong }: Measured) => {
    const cells = [
      name,
      run.p50.toFixed(1),
      run.p99.toFixed(1),
      loop.longest.toFixed(1),
      loop.over.join(", "),
      wrong ?? seconds.toFixed(2)
    ]
    say(`large: ${cells.join("  ")}`)
    rows.push(cells)
  }
  row("nothing", await measure(bench, load, at, file))
  const only = process.env["BENCH_LARGE_CASES"]
  for (const one of cases)
    if (only === undefined || one.name.includes(only)) row(one.name, await measure(bench, load, at, file, one))
  row("nothing", await measure(bench, load, at, file))
  print(`\n${rate} short calls per second beside ${times} calls of ${largeBytes / 1e6} MB, one after the other\n`)
  print(table(rows))
  const wrong = rows.slice(1).filter((cells) => Number.isNaN(Number(cells.at(-1))))
  if (wrong.length > 0)
    throw new Error(`large calls FAILED: ${wrong.map(([name, ...cells]) => `${name}: ${cells.at(-1)}`).join("; ")}`)
  await service.stop()
  for (const child of [vendor, load, upstream]) await stop(child)
}

export const large: Part = {
  name: "large",
  about: "prompts and answers of 30 MB beside 1,000 short calls per second",
  run
}
