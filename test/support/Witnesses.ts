/** Witnesses of a log on loopback ports: the sandbox's rules over real HTTP. A test can replace a witness's replies. */
import { createServer } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"
import type { Scope } from "effect"
import type { NoteKey } from "../../src/books/log/Note.ts"
import type { Witness as Configured } from "../../src/books/log/Settings.ts"
import { Witness } from "../../src/sandbox/Witness.ts"

export interface Served {
  readonly witness: Witness
  readonly configured: Configured
  /** The bodies of the requests, oldest first. */
  readonly requests: Array<string>
  /** Replies instead of the witness. */
  instead: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
}

const read = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

/** Serves a witness that trusts these keys for any log that they name. */
export const serve = (
  name: string,
  keys: () => Promise<ReadonlyArray<NoteKey>>
): Effect.Effect<Served, never, Scope.Scope> =>
  Effect.gen(function* () {
    const witness = new Witness(
      name,
      async (origin) => {
        const known = (await keys()).filter((key) => key.name === origin)
        return known.length === 0 ? undefined : known
      },
      () => 1_772_359_200_000
    )
    const requests: Array<string> = []
    const server = createServer((request, response) => {
      void read(request).then(async (body) => {
        requests.push(body)
        if (served.instead !== undefined) return served.instead(request, response)
        const isPath = request.method === "POST" && request.url === "/w/add-checkpoint"
        const reply = isPath ? await witness.add(body) : { status: 405, headers: {}, body: "" }
        response.writeHead(reply.status, reply.headers).end(reply.body)
      })
    })
    yield* Effect.acquireRelease(
      Effect.async<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.async<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
    )
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/w`
    const served: Served = {
      witness,
      configured: { url, key: witness.key, verifier: witness.verifier },
      requests,
      instead: undefined
    }
    return served
  })
