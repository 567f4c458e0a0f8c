/** In the page: keeps the connections to IndexedDB that were used and are not closed. */
export const keepConnections = () => {
  globalThis.connections = new Set();
  const { close, transaction } = IDBDatabase.prototype;
  IDBDatabase.prototype.close = function () {
    globalThis.connections.delete(this);
    return close.call(this);
  };
  IDBDatabase.prototype.transaction = function (...args) {
    globalThis.connections.add(this);
    return transaction.apply(this, args);
  };
};
