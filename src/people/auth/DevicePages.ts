/** The pages of the device flow: the form for the user code, and the consent page. */
import { Effect } from "effect"
import { storable } from "../../http/lanes/Answer.ts"
import { described } from "../credentials/Scope.ts"
import type { DeviceConsent } from "./Authorization.ts"
import type { BrowserContract, Dependencies } from "./Browser.ts"
import type { SignedIn } from "./BrowserState.ts"
import { shownUserCode } from "./Devices.ts"
import { formOf, html, queryOf, tooLong } from "./PageReply.ts"
import * as Pages from "./Pages.ts"
import { findSubmitter, proofOf, readSignIn, signInFirst } from "./ProviderSignIn.ts"

export const device = (dependencies: Dependencies): BrowserContract["device"] =>
  Effect.fnUntraced(function* (http) {
    const { authorization, info, pages } = dependencies
    const form = { service: info.service_name, action: `${pages}/device` }
    const user_code = shownUserCode(queryOf(http).get("user_code") ?? "")
    if (user_code === "") return html(200, Pages.deviceCode(form))
    // Only signed-in users may try codes.
    const person = yield* readSignIn(dependencies, http)
    if (person === undefined) {
      return yield* signInFirst(dependencies, `device?${new URLSearchParams({ user_code })}`, undefined)
    }
    const waiting = yield* authorization.findDevice(user_code)
    if (waiting === undefined) return html(400, Pages.deviceCode({ ...form, unknown: user_code }))
    return yield* ask(dependencies, waiting, user_code, person.cookie, person.who)
  })

const ask = Effect.fnUntraced(function* (
  dependencies: Dependencies,
  { client, grant }: DeviceConsent,
  user_code: string,
  cookie: string,
  who: SignedIn
) {
  const { info, pages, tenants } = dependencies
  const [person] = yield* tenants.named([who.account_id])
  return html(
    200,
    Pages.consent({
      service: info.service_name,
      client: client.name,
      person: person?.email ?? "",
      allows: described(grant),
      trusted: grant === "all",
      warning: `Continue only if your own device shows ${user_code} now. If someone sent you this code or a link to this page, do not allow access.`,
      then: "You can close this page afterwards.",
      action: `${pages}/device`,
      fields: { user_code, proof: proofOf(dependencies, cookie) }
    })
  )
})

export const decideDevice = (dependencies: Dependencies): BrowserContract["decideDevice"] =>
  Effect.fnUntraced(function* (http) {
    const form = yield* formOf(http)
    const who = yield* findSubmitter(dependencies, http, form)
    if (who === undefined) return html(400, Pages.wrong(tooLong))
    const decision = form.get("decision") === "allow" ? "allow" : "deny"
    const decided = dependencies.authorization.decideDevice(who, form.get("user_code") ?? "", decision)
    return (yield* storable(decided))
      ? html(200, Pages.decided(decision === "allow"))
      : html(400, Pages.wrong("The code has expired or was already used. Start again on your device."))
  })
