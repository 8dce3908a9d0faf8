// Prompts and responses of 30 MB beside short calls, in every protocol, and the largest requests and responses of the other routes: how long the main
// thread's event loop is blocked at most, and the latency of the short calls.
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { chatCalls, models } from "../calls.ts"
import { contender, drive, print, say, table } from "../frame.ts"
import type { Bench, Contender, Part, Run } from "../frame.ts"
import { startGateway } from "../gateway.ts"
import { imageOf, largeBytes, longText, promptOf, vendorProtocols } from "../large.ts"
import type { ClientProtocol, Content, VendorProtocol } from "../large.ts"
import { ask, root, sleep, startPart, stop } from "../processes.ts"
import { startOutside } from "../world.ts"

/** Short calls per second. A slower machine needs a lower rate. `BENCH_LARGE_CASES` selects cases by parts of their names (`a;b`). */
const rate = Number(process.env["BENCH_LARGE_RATE"] ?? 1_000)
/** The number of consecutive large calls. */
const times = 2

interface Case {
  readonly name: string
  readonly path: string
  /** Builds the request's body. Without it, the request is a GET. */
  readonly body?: () => string | FormData
}

const pathOf = { chat: "/v1/chat/completions", messages: "/v1/messages", responses: "/v1/responses" } as const

/** A large prompt in the client's protocol for the vendor's protocol, with a short response. */
const prompt = (client: ClientProtocol, vendor: VendorProtocol, content: Content): Case => ({
  name: `prompt, ${content}: ${client}${client === vendor ? "" : ` to ${vendor}`}`,
  path: pathOf[client],
  body: () => promptOf(client, content, `small-${vendor}`)
})

/** A short prompt with a large response. */
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

const json = (body: object) => () => JSON.stringify(body)
const many = <A>(length: number, one: A): ReadonlyArray<A> => Array.from({ length }, () => one)
const sentence = "account ".repeat(100)

const form = (fields: Readonly<Record<string, string>>, file: string, bytes: () => Buffer) => () => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  form.set(file, new Blob([Uint8Array.from(bytes())]), "file.png")
  return form
}
const image = () => Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(18_000_000, "noise")])

/** The routes outside the three client protocols, with their largest bodies or responses. */
const others: ReadonlyArray<Case> = [
  ...(["file", "text", "many"] as const).map((content) => ({
    name: `prompt, ${content}: count_tokens`,
    path: "/v1/messages/count_tokens",
    body: () => promptOf("messages", content, "small-messages")
  })),
  ...(["file", "text", "many"] as const).map((content) => ({
    name: `prompt, ${content}: chat to signed bedrock`,
    path: "/v1/chat/completions",
    body: () => promptOf("chat", content, "signed-bedrock")
  })),
  {
    name: "instructions: responses",
    path: "/v1/responses",
    body: () =>
      JSON.stringify({ model: "small-responses", input: "Hi", instructions: longText(largeBytes), store: false })
  },
  {
    name: "tools: responses to chat",
    path: "/v1/responses",
    body: () =>
      JSON.stringify({
        model: "small-chat",
        input: "Hi",
        tools: many(20_000, { type: "function", name: "note", description: longText(1_000), parameters: {} }),
        store: false
      })
  },
  {
    name: "prompt, many: embeddings",
    path: "/v1/embeddings",
    body: json({ model: "text-embeddings", input: many(1_500, sentence.repeat(6)) })
  },
  {
    name: "prompt, tokens: embeddings",
    path: "/v1/embeddings",
    body: json({ model: "small-embeddings", input: many(20, many(10_000, 1_234)) })
  },
  {
    name: "answer, many: embeddings",
    path: "/v1/embeddings",
    body: json({ model: "text-embeddings", input: many(1_500, "account") })
  },
  {
    name: "answer, base64: embeddings",
    path: "/v1/embeddings",
    body: json({ model: "text-embeddings", input: many(1_500, "account"), encoding_format: "base64" })
  },
  {
    name: "prompt, documents returned: rerank",
    path: "/v1/rerank",
    body: json({ model: "text-rerank", query: "tide", documents: many(10_000, sentence), return_documents: true })
  },
  {
    name: "prompt, file: images",
    path: "/v1/images/generate",
    body: () => JSON.stringify({ prompt: "A tide", source_url: imageOf(largeBytes), provider: "small" })
  },
  {
    name: "prompt, form: images",
    path: "/v1/images/edits",
    body: form({ prompt: "A tide", model: "small" }, "image", image)
  },
  { name: "answer, files: images", path: "/v1/images/generate", body: json({ prompt: "A tide", provider: "text" }) },
  {
    name: "answer, many: decisions",
    path: "/v1/decisions",
    body: json({ state: "The tide is in.", questions: { in: { type: "boolean" } } })
  },
  { name: "answer, many: search", path: "/v1/search?query=tide&provider=text" },
  {
    name: "answer, segments: transcription",
    path: "/v1/audio/transcriptions",
    body: form({ model: "whisper", response_format: "srt" }, "file", () => Buffer.alloc(24_000_000, "sound"))
  }
]

const cases: ReadonlyArray<Case> = [
  ...pairs.flatMap(([client, vendor]) =>
    (["file", "text", "many"] as const).map((content) => prompt(client, vendor, content))
  ),
  ...pairs.flatMap(([client, vendor]) => (["text", "many"] as const).map((content) => answer(client, vendor, content))),
  ...others
]

const price = { prompt_usd_per_million: "0.001", completion_usd_per_million: "0.001" }
const inputPrice = { input_usd_per_million: "0.001" }
const sizes = ["small", "text", "many"] as const
const twoSizes = ["small", "text"] as const

/** The upstreams by their names, `<size>-<protocol>`. */
const upstreamsAt = (port: number): Readonly<Record<string, object>> => {
  const at = (name: string, more: object) => [
    name,
    { base_url: `http://127.0.0.1:${port}/${name.replace("-", "/")}`, ...more }
  ]
  const key = { api_key_env: "BENCH_UPSTREAM_KEY" }
  const tools = ["embeddings", "rerank", "images", "decisions", "search", "transcription"]
  const access = { access_key_id_env: "BENCH_UPSTREAM_KEY", secret_access_key_env: "BENCH_UPSTREAM_KEY" }
  return Object.fromEntries([
    ...sizes.flatMap((size) =>
      vendorProtocols.map((protocol) => at(`${size}-${protocol}`, { ...key, speaks: [protocol] }))
    ),
    ...twoSizes.flatMap((size) => tools.map((tool) => at(`${size}-${tool}`, key))),
    [
      "signed-bedrock",
      {
        base_url: `http://127.0.0.1:${port}/small/bedrock`,
        aws: { region: "eu-west-1", ...access },
        speaks: ["bedrock"]
      }
    ]
  ]) as Readonly<Record<string, object>>
}

const modelsOf = (names: ReadonlyArray<string>): ReadonlyArray<object> =>
  names.map((name) => ({
    id: name,
    name,
    context_length: 1_000_000,
    max_output_tokens: 4096,
    price,
    upstreams: [{ upstream: name, model: "m" }]
  }))

/** The models or providers of a tool, one for each size. */
const bySize = (tool: string, more: object) =>
  twoSizes.map((size) => ({ id: `${size}-${tool}`, ...more, upstreams: [{ upstream: `${size}-${tool}`, model: "m" }] }))
const providers = (tool: string, more: object) =>
  twoSizes.map((size) => ({ id: size, ...more, upstream: `${size}-${tool}` }))

/** Adds the vendor's upstreams, models and tools to the configuration. */
const withVendor = (port: number) => (configuration: Readonly<Record<string, unknown>>) => ({
  ...configuration,
  upstreams: { ...(configuration.upstreams as object), ...upstreamsAt(port) },
  models: [
    ...(configuration.models as ReadonlyArray<object>),
    ...modelsOf([
      ...sizes.flatMap((size) => vendorProtocols.map((protocol) => `${size}-${protocol}`)),
      "signed-bedrock"
    ])
  ],
  embeddings: bySize("embeddings", { max_input_tokens: 10_000, price: inputPrice }),
  rerank: bySize("rerank", { max_documents: 10_000, price: inputPrice }),
  decisions: { upstream: "text-decisions", model: "m" },
  tools: {
    search: providers("search", { vendor: "tavily", usd_per_query: "0.000001" }),
    images: providers("images", { endpoint: "draw", image_to_image_endpoint: "redraw", usd_per_image: "0.000001" }),
    transcription: [
      {
        id: "text",
        upstream: "text-transcription",
        models: [{ id: "whisper", wire_format: "verbose_json", usd_per_minute: "0.000001" }]
      }
    ]
  }
})

interface Loop {
  readonly longest: number
  readonly limits: ReadonlyArray<number>
  readonly over: ReadonlyArray<number>
}

/** Reads the event loop's measurements since the previous reading. */
const loopOf = async (pid: number, file: string): Promise<Loop> => {
  rmSync(file, { force: true })
  process.kill(pid, "SIGUSR2")
  const text = () => (existsSync(file) ? readFileSync(file, "utf8") : "")
  while (!text().endsWith("\n")) await sleep(10)
  return JSON.parse(text()) as Loop
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
  const body = one?.body?.()
  const sent = typeof body === "string" ? Buffer.from(body) : body
  await loopOf(at.pid, file)
  let wrong: string | undefined
  let seconds = 0
  const large = async () => {
    if (one === undefined) return
    await sleep(300)
    for (let i = 0; i < times && wrong === undefined; i++) {
      const began = performance.now()
      const response = await fetch(`http://127.0.0.1:${at.port}${one.path}`, {
        method: sent === undefined ? "GET" : "POST",
        headers: {
          ...(!(sent instanceof FormData) && { "content-type": "application/json" }),
          authorization: `Bearer ${at.keys[0]}`
        },
        body: sent ?? null
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
  const only = process.env["BENCH_LARGE_CASES"]?.split(";")
  for (const one of cases)
    if (only === undefined || only.some((part) => one.name.includes(part)))
      row(one.name, await measure(bench, load, at, file, one))
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
