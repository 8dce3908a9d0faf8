/** The applications through which people may sign in, as the operator has registered them. */
import { Context } from "effect"

export interface Client {
  readonly client_id: string
  readonly name: string
}

export class Clients extends Context.Tag("tollgate/auth/Clients")<Clients, ReadonlyArray<Client>>() {}
