/** Makes every call to hostile vendors and judges the responses that the client gets. */
import fc from "fast-check"
import { misfit } from "../Schema.ts"
import { calls } from "./Calls.ts"
import type { Call } from "./Calls.ts"
import { changes } from "./Fault.ts"
import type { Change } from "./Fault.ts"
import type { World } from "./World.ts"

/** A call, with the faults in its vendor's responses. */
export interface Plan {
  readonly call: string
  readonly changes: ReadonlyArray<Change>
}

export interface Found {
  readonly kind: string
  readonly what: string
  readonly plan: Plan
  readonly seed: number
}

export interface Counts {
  calls: number
  readonly statuses: Map<string, number>
  slowest_ms: number
}

/** The maximum duration of a call, in milliseconds. A vendor is silent for at most two seconds, and failovers try another vendor. */
const limit_ms = 75_000
/**
 * The maximum duration of a call that waits for images, in milliseconds. If polls fail, the service waits five minutes. The faults of other calls
 * affect the polls too.
 */
const waiting_ms = 330_000

/** Matches text that must not reach a client: the vendor's key and internal details. */
const secret =
  /sk-vendor-key|\n\s+at [\w.<>]+ ?\(|node_modules|is not a function|Cannot read propert|UND_ERR|ECONNRE|HPE_/

export const isSecret = (text: string, sent: ReadonlyArray<Change>): boolean => {
  const found = secret.exec(text)?.[0]
  // Text from the vendor's response may be relayed.
  return found !== undefined && !JSON.stringify(sent).includes(found)
}

/**
 * Returns the fault of a stream, or `undefined` if it has none. A stream must end as its protocol requires, end with an error in the protocol's
 * format, or be cut.
 */
const wrongInStream = (protocol: NonNullable<Call["stream"]>, text: string, isCut: boolean): string | undefined => {
  if (protocol === "other" || isCut) return undefined
  const events = text.split(/\r?\n\r?\n/).flatMap((event) => {
    const data = event.split(/\r?\n/).flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trimStart()] : []))
    return data.length === 0 ? [] : [data.join("\n")]
  })
  const last = events.at(-1)
  if (last === undefined) return "it contains no event"
  if (protocol === "chat")
    return last === "[DONE]" || /"error"/.test(last) ? undefined : `its last event is ${last.slice(0, 200)}`
  const type = /"type":"(message_stop|error|response\.completed|response\.incomplete|response\.failed)"/.exec(last)
  return type === null ? `its last event is ${last.slice(0, 200)}` : undefined
}

const wrongInShape = (shape: Call["shape"], body: unknown): string | undefined => {
  const error = (body as { error?: unknown } | null)?.error
  const isRight =
    shape === "plain"
      ? typeof error === "string"
      : typeof (error as { message?: unknown } | undefined)?.message === "string" &&
        (shape !== "messages" || (body as { type?: unknown }).type === "error")
  return isRight ? undefined : "an error that is not in the protocol's format"
}

let asked = 0

/** Makes one call with these changes. Returns its fault, if any. */
export const send = async (
  world: World,
  plan: Plan,
  note: (status: string) => void
): Promise<{ kind: string; what: string } | undefined> => {
  const call = calls.find(({ name }) => name === plan.call)!
  const { document, key, proxy, routes, service } = world
  const text = `fault-${++asked}- one two three`
  const name = `fault-${asked}-`
  proxy.faults.set(name, plan.changes)
  if (call.follow !== undefined || call.path.includes("/images/")) proxy.ambient = plan.changes
  const form = call.form?.(text)
  const began = performance.now()
  const query = call.query === undefined ? "" : `?${call.query(encodeURIComponent(text))}`
  const wrong = (kind: string, what: string) => ({ kind: `${call.name}: ${kind}`, what: what.slice(0, 800) })
  try {
    const response = await fetch(service.url + call.path + query, {
      method: call.method,
      signal: AbortSignal.timeout(call.waits === true ? waiting_ms : limit_ms),
      headers: {
        authorization: `Bearer ${key}`,
        ...(call.json !== undefined && { "content-type": "application/json" })
      },
      ...(form !== undefined && { body: form }),
      ...(call.json !== undefined && { body: JSON.stringify(call.json(text)) })
    })
    note(String(response.status))
    let isCut = false
    const bytes = await response.arrayBuffer().catch(() => {
      isCut = true
      return new ArrayBuffer(0)
    })
    const body = Buffer.from(bytes).toString()
    const type = response.headers.get("content-type")?.split(";", 1)[0] ?? ""
    if (isSecret(body, plan.changes) && type !== "audio/mpeg")
      return wrong("a secret of the vendor, or an internal detail", body)
    const route = routes.find(({ name }) => name === `${call.method} ${call.path}`)!
    // According to the specification, the decision model's 2xx statuses are relayed.
    const status = call.name === "decisions" && response.ok ? 200 : response.status
    const documented = route.responses[String(status)]?.content
    if (documented === undefined) return wrong(`${response.status} is not documented`, body)
    if (response.status >= 400 && body.includes(proxy.url)) return wrong("the vendor's address", body)
    if (response.status >= 400) return judgedError(document, call, documented, response.status, body, wrong)
    if (call.stream !== undefined && type === "text/event-stream") {
      const found = wrongInStream(call.stream, body, isCut)
      return found === undefined ? undefined : wrong("a stream with a wrong end", found)
    }
    // Audio is relayed as it arrives, so a broken input breaks the response as well.
    if (isCut) return type.startsWith("audio/") ? undefined : wrong("a truncated response", "")
    if (
      documented[type] === undefined &&
      documented["application/json"] !== undefined &&
      route.path !== "/v1/speech" &&
      !/audio|speech|transcriptions/.test(route.path)
    )
      return wrong(`a response of type ${type}`, body)
    if (call.follow !== undefined) await follow(world, call, body)
    return undefined
  } catch (error) {
    const why = String((error as Error).cause ?? error)
    note(/Timeout/.test(why) ? "late" : "no answer")
    return wrong(
      /Timeout/.test(why) ? "no end" : "no answer",
      `${why} after ${(performance.now() - began).toFixed(0)} ms`
    )
  } finally {
    proxy.faults.delete(name)
  }
}

const judgedError = (
  document: World["document"],
  { shape }: Call,
  documented: Readonly<Record<string, { readonly schema?: object }>>,
  status: number,
  text: string,
  wrong: (kind: string, what: string) => { kind: string; what: string }
) => {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return wrong(`${status} that is not JSON`, text)
  }
  const other = wrongInShape(shape, body)
  if (other !== undefined) return wrong(`${status}: ${other}`, text)
  if (/"internal_error"/.test(text)) return wrong("internal error", text)
  const found = misfit(document.components.schemas, documented["application/json"]?.schema ?? {}, body)
  return found === undefined ? undefined : wrong(`${status} violates its schema`, `${found}: ${text}`)
}

/** Polls a job once while its vendor is hostile, then abandons it. */
const follow = async ({ key, service }: World, call: Call, body: string): Promise<void> => {
  const answer = JSON.parse(body) as { request_id?: string; result?: { request_id?: string } }
  const request_id = encodeURIComponent(answer.request_id ?? answer.result?.request_id ?? "none")
  const paths = call.follow === "media" ? ["/v1/tools/media/status", "/v1/tools/media/result"] : ["/v1/images/status"]
  for (const path of paths) {
    const { body, status } = await service.call(`${path}?request_id=${request_id}`, { token: key })
    if (status === 500 && body.code !== "upstream_error")
      throw new Error(`${path} returned ${status} ${JSON.stringify(body)}`)
  }
}

/** Generates calls together with their vendors' faults. */
export const plans = (named: string, patient: boolean): fc.Arbitrary<Plan> =>
  fc.record({
    call: fc.constantFrom(
      ...calls.filter(({ name, waits }) => name.includes(named) && (patient || waits !== true)).map(({ name }) => name)
    ),
    changes: fc.oneof(
      { weight: 3, arbitrary: changes.map((change) => [change]) },
      { weight: 1, arbitrary: fc.tuple(changes, changes) }
    )
  })

export interface Options {
  readonly seed: number
  readonly calls: number
  readonly until?: number
  readonly workers: number
  /** Whether to include calls that wait up to five minutes for their images. */
  readonly patient: boolean
  readonly named?: string
  readonly progress?: (counts: Counts) => void
  readonly told?: (found: Found) => void
}

const shrinksMax = 60

export const run = async (
  world: World,
  options: Options
): Promise<{ readonly counts: Counts; readonly found: ReadonlyArray<Found> }> => {
  const counts: Counts = { calls: 0, statuses: new Map(), slowest_ms: 0 }
  const found: Array<Found> = []
  const kinds = new Set<string>()
  const isOver = () => counts.calls >= options.calls || Date.now() > (options.until ?? Infinity)
  const all = plans(options.named ?? "", options.patient)
  let turn = 0
  const fuzzCalls = async (seed: number): Promise<void> => {
    let last: Found | undefined
    let sent = 0
    const property = fc.asyncProperty(all, async (plan) => {
      // Do not repeat a call that did not end.
      if (last === undefined ? isOver() : ++sent > (last.kind.endsWith("no end") ? 0 : shrinksMax)) return
      const began = performance.now()
      const wrong = await send(world, plan, (status) =>
        counts.statuses.set(status, (counts.statuses.get(status) ?? 0) + 1)
      )
      counts.calls++
      counts.slowest_ms = Math.max(counts.slowest_ms, performance.now() - began)
      options.progress?.(counts)
      if (wrong === undefined || kinds.has(wrong.kind) || (last !== undefined && last.kind !== wrong.kind)) return
      last = { ...wrong, plan, seed }
      throw new Error(wrong.kind)
    })
    await fc.check(property, { seed, numRuns: 20, endOnFailure: false })
    const one = last as Found | undefined
    if (one === undefined || kinds.has(one.kind)) return
    kinds.add(one.kind)
    found.push(one)
    options.told?.(one)
  }
  const work = async (): Promise<void> => {
    while (!isOver()) await fuzzCalls((options.seed + turn++ * 7_919) | 0)
  }
  await Promise.all(Array.from({ length: options.workers }, work))
  return { counts, found }
}
