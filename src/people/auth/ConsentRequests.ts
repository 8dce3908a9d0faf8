/** Validates authorization requests. */
import { Effect } from "effect"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { isStorable, storableRule } from "../../kernel/StoredText.ts"
import { mayRedirect } from "../credentials/Clients.ts"
import type { ClientsContract } from "../credentials/Clients.ts"
import { grantOf, scopes } from "../credentials/Scope.ts"
import type { AuthorizationContract } from "./Authorization.ts"
import { ClientIdNotFound, ClientIdRequired, InvalidScope } from "./Problems.ts"

const nonceMax = 1_000

export const makeCheck = (clients: ClientsContract): AuthorizationContract["check"] =>
  Effect.fn("Authorization.check")(function* (request) {
    const { client_id, code_challenge, code_challenge_method, nonce, redirect_uri, response_type, state } = request
    const { scope = "" } = request
    if (client_id === undefined || client_id === "") return yield* new ClientIdRequired()
    const client = yield* clients.find(client_id, ["oauth"])
    if (client === undefined) return yield* new ClientIdNotFound()
    if (redirect_uri === undefined || !mayRedirect(client, redirect_uri)) {
      return yield* InvalidRequest.of("redirect_uri", "must be a redirect URI that the application registered")
    }
    if (response_type !== "code") return yield* InvalidRequest.of("response_type", "code")
    if (code_challenge_method !== "S256") return yield* InvalidRequest.of("code_challenge_method", "S256")
    if (code_challenge === undefined || !/^[A-Za-z0-9_-]{43}$/.test(code_challenge)) {
      return yield* InvalidRequest.of("code_challenge", "must be the SHA-256 of the verifier in base64url")
    }
    if (nonce !== undefined && nonce.length > nonceMax)
      return yield* InvalidRequest.of("nonce", `must be at most ${nonceMax} characters long`)
    if (nonce !== undefined && !isStorable(nonce)) return yield* InvalidRequest.of("nonce", storableRule)
    const granted = grantOf(scope, client.trusted === true)
    if ("unknown" in granted) return yield* unknownScope(granted.unknown)
    return { client, redirect_uri, scope, grant: granted.grant, state, nonce, challenge: code_challenge }
  })

const unknownScope = (word: string) =>
  new InvalidScope({
    message: `scope: ${word.slice(0, 100)} is unknown`,
    field: "scope",
    rule: `must be one or more of ${scopes.join(", ")}`
  })
