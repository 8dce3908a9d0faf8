/** The reason why a request cannot be translated to another protocol, and its field. */

export interface Uncarriable {
  /** The field in the client's protocol, for example `messages.2.content.0`. Empty for the request itself. */
  readonly field: string
  /** The reason, as a clause that follows the field: `the upstream of this model takes no audio`. */
  readonly why: string
}

/** Collects findings while a request is read or written. The client gets the first. */
export class Findings {
  first: Uncarriable | undefined = undefined

  add(field: string, why: string): void {
    this.first ??= { field, why }
  }
}
