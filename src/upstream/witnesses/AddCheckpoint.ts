/** Sends checkpoints to a witness with `add-checkpoint` (C2SP tlog-witness). Redirects are not followed. */
import { Effect } from "effect"
import type { Scope } from "effect"
import type { WitnessReply } from "../../books/log/Cosigning.ts"
import * as Wire from "../wire/Wire.ts"

/** The maximum time for a request, and the maximum length of a reply in bytes. */
const timeout = 5_000
const limit = 16 * 1024

/** Opens the connections to a witness. The result sends the body of a request. */
export const connect = (
  url: string
): Effect.Effect<(body: string) => Effect.Effect<WitnessReply>, never, Scope.Scope> =>
  Effect.map(
    Wire.make({ base_url: url, silence_ms_max: timeout, total_ms_max: timeout }),
    (wire) => (body) =>
      wire
        .exchange(
          { method: "POST", path: "/add-checkpoint", headers: { "content-type": "text/plain; charset=utf-8" }, body },
          { limit, timeout, read_on: false }
        )
        .pipe(
          Effect.map(replyOf),
          Effect.catchTag("Unreachable", ({ reason }) => Effect.succeed(failed(reason)))
        )
  )

const failed = (reason: string): WitnessReply => ({ _tag: "Failed", reason })

/** Explains statuses that the protocol defines. */
const reasons: Readonly<Record<number, string>> = {
  400: "status 400: it does not accept the request",
  403: "status 403: it does not trust the log's key",
  404: "status 404: it does not know the log"
}

const replyOf = ({ body, status }: Wire.Whole): WitnessReply => {
  const text = body.toString("utf8")
  if (status === 200) return { _tag: "Cosigned", lines: text }
  if (status === 422) return { _tag: "Inconsistent" }
  if (status === 409) return sizeOf(text)
  return failed(
    reasons[status] ?? (status >= 300 && status < 400 ? `status ${status}: a redirect` : `status ${status}`)
  )
}

const sizeOf = (text: string): WitnessReply => {
  const [, digits] = /^(0|[1-9]\d*)\n$/.exec(text) ?? []
  return digits !== undefined && Number.isSafeInteger(Number(digits))
    ? { _tag: "OtherSize", size: Number(digits) }
    : failed("status 409 without a size")
}
