/** The email capability. Its price and mail server are settings of `people/mail`. */
import { Effect } from "effect"
import { MailHttp } from "./Http.ts"
import { SelfMail } from "./SelfMail.ts"

export const capability = { handlers: MailHttp, layer: SelfMail.layer, names: Effect.succeed(["email"]) }
