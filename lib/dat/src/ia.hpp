// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#pragma once

#include "handle.hpp"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace dapx::dat {

class Evd;
struct Listener;

/// What a consumer opens by the name of a line of dat.conf.
struct Provider {
    DAT_PROVIDER table;
    DAT_PROVIDER_INFO info;
    std::string device; ///< the RDMA device's name
};

/// An interface adapter: a context, and all that was made in it.
class Ia : public Object {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_IA;

    /// What objects are made from.
    [[nodiscard]] static std::expected<std::unique_ptr<Ia>, DAT_RETURN>
    open(const Provider& provider) noexcept;

    Ia(Slot& slot, const Provider& provider, core::Context context, core::ModuleInfo module,
       core::DeviceAttributes device, core::Address address, core::Pd no_pd,
       core::Evd no_evd) noexcept;

    [[nodiscard]] const Provider& provider() const noexcept { return provider_; }
    [[nodiscard]] const core::Context& context() const noexcept { return context_; }
    [[nodiscard]] const core::ModuleInfo& module() const noexcept { return module_; }
    [[nodiscard]] const core::DeviceAttributes& device() const noexcept { return device_; }
    /// The device's; where service points listen.
    [[nodiscard]] const core::Address& address() const noexcept { return address_; }
    /// The same for consumers, who find it here as long as the IA is open.
    [[nodiscard]] DAT_IA_ADDRESS_PTR address_ptr() const noexcept;
    /// As consumers name it: the registry has a number for it.
    [[nodiscard]] DAT_IA_HANDLE consumer_handle() const noexcept;

    /// What an endpoint has in the place of a PZ and of EVDs that it was not given.
    [[nodiscard]] const core::Pd& no_pd() const noexcept { return no_pd_; }
    [[nodiscard]] const core::Evd& no_evd() const noexcept { return no_evd_; }

    /// What dat_ia_query tells beside the standard's attributes, by the names of older providers.
    [[nodiscard]] std::span<const DAT_NAMED_ATTR> provider_attributes() const noexcept
    {
        return attributes_;
    }

    /// Where asynchronous events go: an EVD of the IA's, which goes with it; DAT_HANDLE_NULL if the
    /// consumer has it elsewhere.
    [[nodiscard]] DAT_HANDLE async_evd() const noexcept { return async_evd_; }
    void set_async_evd(Evd& evd) noexcept;

    /// DAT_INVALID_HANDLE: it is being closed.
    [[nodiscard]] DAT_RETURN add(Object& object) noexcept;
    void remove(Object& object) noexcept;
    /// The handle of an object that @p is_it says yes to.
    template <class Predicate> [[nodiscard]] DAT_HANDLE find(Predicate is_it) noexcept
    {
        const std::lock_guard lock(mutex_);
        for (const Object* object : objects_)
            if (is_it(*object))
                return object->handle();
        return DAT_HANDLE_NULL;
    }
    /// Of a service point that is gone, but not all requests that came to it. Throws std::bad_alloc.
    void add_listener(std::uint32_t number, const std::shared_ptr<Listener>& listener);
    [[nodiscard]] std::shared_ptr<Listener> listener(std::uint32_t number) noexcept;

    /// dat_ia_close.
    [[nodiscard]] DAT_RETURN close(DAT_CLOSE_FLAGS flags) noexcept;

private:
    [[nodiscard]] bool empty() noexcept;
    /// Frees all objects of @p type that nothing needs.
    void destroy_all(DAT_HANDLE_TYPE type) noexcept;

    const Provider& provider_;
    core::Context context_;
    core::ModuleInfo module_;
    core::DeviceAttributes device_;
    core::Address address_;
    core::Pd no_pd_;
    core::Evd no_evd_;
    std::string mtu_;
    std::array<DAT_NAMED_ATTR, 2> attributes_{
        {{"DAT_IB_TRANSPORT_MTU", mtu_.c_str()}, {"DAT_IB_RDMA_READ", "TRUE"}}};
    DAT_HANDLE async_evd_ = DAT_HANDLE_NULL;
    Use async_evd_use_;
    std::mutex mutex_;
    bool closed_ = false;
    std::set<Object*> objects_;
    std::map<std::uint32_t, std::weak_ptr<Listener>> listeners_;
};

/// A new T in @p ia, not known to anybody yet; nullptr if there is no room.
template <class T, class... Args> std::unique_ptr<T> make(Ia& ia, Args&&... args) noexcept
{
    return make_at<T>(Slot::take(T::handle_type, ia.provider().table), ia,
                      std::forward<Args>(args)...);
}

} // namespace dapx::dat
