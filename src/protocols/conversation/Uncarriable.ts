/** Why a request does not go from one protocol into another: which field, and in one sentence why. */

export interface Uncarriable {
  /** The field by the client's own names, as `messages.2.content.0`; empty where it is the request itself. */
  readonly field: string
  /** One sentence without a full stop, to be read after the field: `the upstream of this model takes no audio`. */
  readonly why: string
}

/** Findings while a request is read or written. The first of it is what the client is told. */
export class Findings {
  first: Uncarriable | undefined = undefined

  add(field: string, why: string): void {
    this.first ??= { field, why }
  }
}
