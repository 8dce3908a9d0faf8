/** Fetches issuers' discovery documents. Concurrent callers share one request. A document is cached for an hour, and a failure for a second. */
import { Clock, Deferred, Duration, Effect, FiberId } from "effect"
import type { Scope } from "effect"
import { IdentityProviderUnavailable } from "./Problems.ts"
import { text } from "./Provider.ts"

/** The timeout of a request to a provider, in milliseconds. */
export const requestTimeout = 10_000
const documentLifetime = Duration.toMillis(Duration.hours(1))
const afterFailure = Duration.toMillis(Duration.seconds(1))

/** An issuer's discovery document; `undefined` if it returned none. */
export type Document = { readonly [entry: string]: unknown } | undefined

type Endpoint = "jwks_uri" | "authorization_endpoint" | "token_endpoint" | "userinfo_endpoint"

interface Known {
  readonly document: Deferred.Deferred<Document>
  /** When the next request is due, in Unix milliseconds; infinite while a request is running. */
  until: number
  last: Document
  /** Whether the last request returned a document; `undefined` before the first response. */
  reachable: boolean | undefined
}

/** Creates the cache. `scope` owns the requests, so if the first caller is interrupted, the others still get the document. */
export const make = (scope: Scope.Scope) => {
  const documents = new Map<string, Known>()

  const learn = Effect.fnUntraced(function* (issuer: string, entry: Known) {
    const document = yield* Effect.interruptible(fetched(issuer))
    const now = yield* Clock.currentTimeMillis
    entry.until = now + (document === undefined ? afterFailure : documentLifetime)
    entry.reachable = document !== undefined
    // Fall back to the last known document, because outdated keys are better than none.
    entry.last = document ?? entry.last
    yield* Deferred.succeed(entry.document, entry.last)
  })

  /**
   * Returns the current request or starts a new one. Starting a request is uninterruptible, because an entry without a running request would block
   * its callers.
   */
  const requested = (issuer: string): Effect.Effect<Known> =>
    Effect.uninterruptible(
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const known = documents.get(issuer)
        if (known !== undefined && now < known.until) return Effect.succeed(known)
        const entry: Known = {
          document: Deferred.unsafeMake(FiberId.none),
          until: Number.POSITIVE_INFINITY,
          last: known?.last,
          reachable: known?.reachable
        }
        documents.set(issuer, entry)
        return Effect.as(Effect.forkIn(learn(issuer, entry), scope), entry)
      })
    )

  const documentOf = (issuer: string): Effect.Effect<Document> =>
    Effect.flatMap(requested(issuer), ({ document }) => Deferred.await(document))

  /** Returns a URL from an issuer's discovery document. Fails with `IdentityProviderUnavailable` if the document does not contain it. */
  const endpointOf = (issuer: string, endpoint: Endpoint) =>
    Effect.flatMap(documentOf(issuer), (document) => {
      const address = text(document?.[endpoint])
      return URL.canParse(address) ? Effect.succeed(new URL(address).href) : new IdentityProviderUnavailable()
    })

  /** Returns whether the last request succeeded; `undefined` before the first response. Starts a request that is due, but does not wait for it. */
  const isReachable = (issuer: string): Effect.Effect<boolean | undefined> =>
    Effect.map(requested(issuer), ({ reachable }) => reachable)

  return { documentOf, endpointOf, isReachable }
}

export type Discovery = ReturnType<typeof make>

const fetched = (issuer: string): Effect.Effect<Document> =>
  Effect.tryPromise(async (signal) => {
    const response = await fetch(`${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(requestTimeout)]),
      redirect: "error"
    })
    const document: unknown = response.ok ? await response.json() : undefined
    return typeof document === "object" && document !== null ? (document as Document) : undefined
  }).pipe(Effect.orElseSucceed(() => undefined))
