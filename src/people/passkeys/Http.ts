import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { answer } from "../../http/lanes/Answer.ts"
import { PasskeysApi } from "./Api.ts"
import { Passkeys } from "./Passkeys.ts"

export const PasskeysHttp = HttpApiBuilder.group(
  contract.add(PasskeysApi),
  "passkeys",
  Effect.fnUntraced(function* (handlers) {
    const passkeys = yield* Passkeys
    return handlers
      .handle("passkeys", () =>
        answer(({ account_id }) => Effect.map(passkeys.list(account_id), (all) => ({ passkeys: all })))
      )
      .handle("passkeyOptions", () => answer(({ account_id }) => passkeys.begin(account_id)))
      .handle("registerPasskey", ({ payload }) => answer(({ account_id }) => passkeys.register(account_id, payload)))
      .handle("removePasskey", ({ path }) =>
        answer(({ account_id }) => Effect.as(passkeys.remove(account_id, path.passkey_id), { success: true as const }))
      )
  })
)
