/**
 * Serves the log's public files (C2SP tlog-tiles): its checkpoint and its tiles. A tile of a given width never changes, so it may be cached
 * forever.
 *
 * Where the specification is silent:
 * - An address may read 1,200 of these files a minute (`rate_limits.log`); the next request gets 429 `rate_limited`. A reader of a long log that needs
 *   more reads through a cache.
 */
import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { RouteNotFound } from "../../http/contract/Problems.ts"
import { RateLimits } from "../../http/transport/RateLimits.ts"
import * as Reply from "../../http/transport/Reply.ts"
import { ChargeLog } from "../../books/log/ChargeLog.ts"
import { tileOfPath } from "./TilePath.ts"

const forever = "public, max-age=31536000, immutable"
/** A checkpoint is at most a second old, and the next checkpoint follows a second later. */
const shortCache = "public, max-age=1"

const found = (type: string, caching: string, body: string | Buffer) =>
  Reply.toResponse({ status: 200, headers: { "content-type": type, "cache-control": caching }, body })

export const LogHttp = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    const log = yield* ChargeLog
    const limits = yield* RateLimits
    const counted = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      Effect.orDie(Effect.as(limits.take("log", request), request))
    )
    yield* router.get(
      "/checkpoint",
      Effect.gen(function* () {
        yield* counted
        const checkpoint = yield* log.checkpoint
        if (checkpoint === undefined) return yield* Effect.die(new RouteNotFound())
        return found("text/plain; charset=utf-8", shortCache, checkpoint)
      })
    )
    yield* router.get(
      "/tile/*",
      Effect.gen(function* () {
        const { url } = yield* counted
        const asked = tileOfPath(url.split(/[?#]/, 1)[0]!.replace(/^.*?\/tile\//, ""))
        const hashes = asked && (yield* log.tile(asked, asked.width))
        if (hashes === undefined) return yield* Effect.die(new RouteNotFound())
        return found("application/octet-stream", forever, Buffer.from(hashes))
      })
    )
  })
)
